//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// passed is the result of Enter.
type passed struct {
	recipes.Passage
	err error
}

// enter enters a double barrier for two members.
func enter(ctx context.Context, t *testing.T, s recipes.Recipes, path string) <-chan passed {
	t.Helper()
	b := must.Get(s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: 2}))(t)
	done := make(chan passed, 1)
	go func() {
		p, err := b.Enter(ctx, nil)
		done <- passed{p, err}
	}()
	return done
}

// sees returns a channel that is closed at the first request that matches.
func (v *surviving) sees(match func(zkserver.Request) bool) <-chan struct{} {
	seen := make(chan struct{})
	var once sync.Once
	v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		if match(r) {
			once.Do(func() { close(seen) })
		}
		return f
	})
	return seen
}

// waits enters a double barrier in the plugin's session. It returns when the host has the
// member's znode.
func (v *surviving) waits(path string) (mine <-chan passed, znode string) {
	v.Helper()
	reads := v.sees(func(r zkserver.Request) bool { return r.Op == zkserver.OpExists && r.Path == path+"/ready" })
	mine = enter(ctx(v), v.T, v.session, path)
	closes(v, "the point", reads)
	v.server.SetFault(nil)
	v.catchUp()
	return mine, v.members(path, 1)[0]
}

// catchUp returns when the host has read the earlier messages of its plugin.
func (v *surviving) catchUp() {
	v.Helper()
	h := v.holds("/catch-up")
	lost := h.Done()
	v.remove(h.Znode())
	closes(v, "Done", lost)
}

// members waits until a double barrier has n members, and returns their znodes.
func (v *surviving) members(path string, n int) (znodes []string) {
	v.Helper()
	eventually(v, func() string {
		znodes = ephemerals(v.server, path)
		return unless(len(znodes) == n, "not %d members: %q", n, znodes)
	})
	return znodes
}

// TestAWaitingMemberSurvivesItsPlugin: it counts from its first Enter on, even for members
// that enter while no plugin serves it.
func TestAWaitingMemberSurvivesItsPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	for i, when := range []string{"without a plugin", "afterwards"} {
		t.Run(when, func(t *testing.T) {
			v, path := v.in(t), fmt.Sprint("/b-", i)
			mine, before := v.waits(path)
			for range 2 {
				v.kill()
			}
			var b passed
			if when == "without a plugin" {
				v.suspend()
				b = <-enter(ctx(t), t, v.rival, path)
				v.proceed()
			} else {
				if after := v.members(path, 1)[0]; after != before {
					t.Errorf("the member was %s, then %s", before, after)
				}
				b = <-enter(ctx(t), t, v.rival, path)
			}
			a := <-mine
			must.Do(t, errors.Join(a.err, b.err))
			if a.Znode() != before || !slices.Equal(a.Members(), b.Members()) || !slices.Contains(a.Members(), a.Znode()) {
				t.Errorf("entered as %s with %q; it waited as %s, and the other entered with %q", a.Znode(), a.Members(), before, b.Members())
			}
			must.Report(t, a.Write(ctx(t), recipes.Create(path+"-inside", nil)))
			left := begin(func() error { return a.Leave(ctx(t)) })
			must.Report(t, errors.Join(b.Leave(ctx(t)), <-left))
			v.nothingLeft(path)
		})
	}
}

// refuseDeletes makes the server end the connection instead of carrying out a deletion of the
// plugin's session.
func (v *surviving) refuseDeletes() {
	v.server.SetFault(func(r zkserver.Request) zkserver.Fault {
		return zkserver.Fault{CloseBefore: r.SessionID == v.session.ID() && (r.Op == zkserver.OpDelete || r.Op == zkserver.OpMulti)}
	})
}

// diesRefused kills the plugin after it has received the calls so far, and ends refuseDeletes.
// The next plugin starts after proceed.
func (v *surviving) diesRefused() {
	v.Helper()
	must.Get(v.session.Stats(ctx(v)))(v) // the plugin receives it after those calls
	p := v.supervisor.Plugin()
	v.suspend()
	closes(v, "Exited", p.Exited())
	v.server.SetFault(nil)
}

// TestAMemberWhoseLeaveWasCanceledIsDeleted: the others do not wait for it, although the plugin
// that should have deleted it has died.
func TestAMemberWhoseLeaveWasCanceledIsDeleted(t *testing.T) {
	t.Parallel()
	v := survive(t)
	for i, when := range []string{"without a plugin", "before it died"} {
		t.Run(when, func(t *testing.T) {
			v, path := v.in(t), fmt.Sprint("/b-", i)
			mine, _ := v.waits(path)
			b := <-enter(ctx(t), t, v.rival, path)
			a := <-mine
			must.Do(t, errors.Join(a.err, b.err))
			canceled, cancel := context.WithCancel(ctx(t))
			cancel()
			if when == "before it died" {
				v.refuseDeletes()
			} else {
				v.suspend()
			}
			if err := a.Leave(canceled); !errors.Is(err, context.Canceled) {
				t.Errorf("a cancelled Leave: %v", err)
			}
			if when == "before it died" {
				v.diesRefused()
			}
			v.proceed()
			must.Report(t, b.Leave(ctx(t)))
			v.nothingLeft(path)
		})
	}
}
