//go:build unix

package host_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// passed is what has come of Enter.
type passed struct {
	recipes.Passage
	err error
}

// enter has a member of two enter.
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

// waits has a member of the plugin's session wait. It returns when the host knows its
// znode.
func (v *surviving) waits(path string) (mine <-chan passed, znode string) {
	v.Helper()
	looked := make(chan struct{})
	var once sync.Once
	v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		if r.Op == zkserver.OpExists && r.Path == path+"/ready" {
			once.Do(func() { close(looked) })
		}
		return f
	})
	mine = enter(ctx(v), v.T, v.session, path)
	closes(v, "the point", looked)
	v.server.SetFault(nil)
	v.hear()
	return mine, v.members(path, 1)[0]
}

// hear returns when the host has read what its plugin has told before.
func (v *surviving) hear() {
	v.Helper()
	h := must.Get(lockAt(v.T, v.session, "/hear").Acquire(ctx(v)))(v)
	lost := h.Done()
	v.remove(h.Znode())
	closes(v, "Done", lost)
}

// members waits until n members of a double barrier are there.
func (v *surviving) members(path string, n int) []string {
	v.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		there := ephemerals(v.server, path)
		if len(there) == n {
			return there
		}
		if time.Now().After(end) {
			v.Fatalf("not %d members: %q", n, there)
		}
	}
}

// TestAMemberThatWaitsOutlivesItsPlugin: it is counted from its first Enter on, also by
// others that enter while no plugin serves it.
func TestAMemberThatWaitsOutlivesItsPlugin(t *testing.T) {
	for _, when := range []string{"without a plugin", "afterwards"} {
		t.Run(when, func(t *testing.T) {
			v := survive(t)
			mine, before := v.waits("/b")
			for range 2 {
				v.kill()
			}
			var theirs <-chan passed
			if when == "without a plugin" {
				v.suspend()
				theirs = enter(ctx(t), t, v.rival, "/b")
				p := <-theirs
				again := make(chan passed, 1)
				again <- p
				theirs = again
				v.goOn()
			} else {
				if after := v.members("/b", 1)[0]; after != before {
					t.Errorf("there was %s, then %s", before, after)
				}
				theirs = enter(ctx(t), t, v.rival, "/b")
			}
			a, b := <-mine, <-theirs
			must.Do(t, errors.Join(a.err, b.err))
			if a.Znode() != before || !slices.Equal(a.Members(), b.Members()) || !slices.Contains(a.Members(), a.Znode()) {
				t.Errorf("entered as %s with %q; it waited as %s, and the other entered with %q", a.Znode(), a.Members(), before, b.Members())
			}
			must.Report(t, a.Write(ctx(t), recipes.Create("/inside", nil)))
			left := make(chan error, 1)
			go func() { left <- a.Leave(ctx(t)) }()
			must.Report(t, errors.Join(b.Leave(ctx(t)), <-left))
			if there := ephemerals(v.server, "/b"); len(there) > 0 {
				t.Errorf("left: %q", there)
			}
		})
	}
}

// TestOthersDoNotLeaveBeforeAMemberWhosePluginDied.
func TestOthersDoNotLeaveBeforeAMemberWhosePluginDied(t *testing.T) {
	v := survive(t)
	mine := enter(ctx(t), t, v.session, "/b")
	v.members("/b", 1)
	b := <-enter(ctx(t), t, v.rival, "/b")
	a := <-mine
	must.Do(t, errors.Join(a.err, b.err))
	members := a.Members()
	left := make(chan error, 1)
	go func() { left <- b.Leave(ctx(t)) }()
	for range 2 {
		v.kill()
	}
	must.Report(t, a.Write(ctx(t), recipes.Create("/inside", nil)))
	select {
	case err := <-left:
		t.Fatalf("the other left before: %v", err)
	default:
	}
	if !slices.Equal(members, a.Members()) {
		t.Errorf("entered with %q, then with %q", members, a.Members())
	}
	must.Report(t, errors.Join(a.Leave(ctx(t)), <-left))
	closes(t, "Done", a.Done())
}

// TestAMemberThatLeavesOutlivesItsPlugin: Leave returns when the others have left, whether
// the member's znode was deleted before its plugin died or not.
func TestAMemberThatLeavesOutlivesItsPlugin(t *testing.T) {
	for _, who := range []string{"the lowest", "the highest"} { // which deletes its znode first
		t.Run(who, func(t *testing.T) {
			v := survive(t)
			first, second := v.session, v.rival
			if who == "the highest" {
				first, second = second, first
			}
			lower := enter(ctx(t), t, first, "/b")
			v.members("/b", 1)
			b := <-enter(ctx(t), t, second, "/b")
			a := <-lower
			must.Do(t, errors.Join(a.err, b.err))
			if who == "the highest" {
				a, b = b, a
			}
			left := make(chan error, 1)
			go func() { left <- a.Leave(ctx(t)) }()
			closes(t, "Done", a.Done())
			if who == "the highest" {
				v.members("/b", 1)
			}
			for range 2 {
				v.kill()
			}
			must.Report(t, b.Write(ctx(t), recipes.Create("/inside", nil)))
			select {
			case err := <-left:
				t.Fatalf("it left while the other is inside: %v", err)
			default:
			}
			must.Report(t, errors.Join(b.Leave(ctx(t)), <-left))
			if there := ephemerals(v.server, "/b"); len(there) > 0 {
				t.Errorf("left: %q", there)
			}
		})
	}
}

// TestAMemberWhoseLeaveWasGivenUpDoesNotStay: the others do not wait for it, though the
// plugin that was to delete it has died.
func TestAMemberWhoseLeaveWasGivenUpDoesNotStay(t *testing.T) {
	for _, when := range []string{"without a plugin", "before it died"} {
		t.Run(when, func(t *testing.T) {
			v := survive(t)
			mine, _ := v.waits("/b")
			b := <-enter(ctx(t), t, v.rival, "/b")
			a := <-mine
			must.Do(t, errors.Join(a.err, b.err))
			given, cancel := context.WithCancel(ctx(t))
			cancel()
			if when == "before it died" {
				v.server.SetFault(func(r zkserver.Request) zkserver.Fault { // nothing of it is deleted
					return zkserver.Fault{CloseBefore: r.SessionID == v.session.ID() && (r.Op == zkserver.OpDelete || r.Op == zkserver.OpMulti)}
				})
			} else {
				v.suspend()
			}
			if err := a.Leave(given); !errors.Is(err, context.Canceled) {
				t.Errorf("a Leave that was given up: %v", err)
			}
			if when == "before it died" {
				if _, err := v.session.Stats(ctx(t)); err != nil { // which the plugin hears after that
					t.Error(err)
				}
				p := v.supervisor.Plugin()
				v.suspend()
				closes(t, "Exited", p.Exited())
				v.server.SetFault(nil)
			}
			v.goOn()
			must.Report(t, b.Leave(ctx(t)))
			if there := ephemerals(v.server, "/b"); len(there) > 0 {
				t.Errorf("left: %q", there)
			}
		})
	}
}
