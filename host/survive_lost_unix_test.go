//go:build unix

package host_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// remove deletes a znode, like an operator.
func (v *surviving) remove(znode string) {
	v.Helper()
	by := must.Get(lockAt(v.T, v.rival, "/operator").Acquire(ctx(v)))(v)
	must.Do(v, errors.Join(by.Write(ctx(v), recipes.Delete(znode, recipes.AnyVersion)), by.Release(ctx(v))))
}

// TestTheNextPluginReportsALoss: the znode of a hold is deleted while no plugin runs, or after
// the next plugin has resumed the hold.
func TestTheNextPluginReportsALoss(t *testing.T) {
	t.Parallel()
	v := survive(t)
	for _, suspended := range []bool{true, false} {
		h := v.holds("/l")
		lost := h.Done()
		if suspended {
			v.suspend()
			v.remove(h.Znode())
			v.proceed()
		} else {
			v.kill()
			must.Do(t, h.Write(ctx(t)))
			v.kill() // the write shows that the first plugin watches
			v.remove(h.Znode())
		}
		closes(t, "Done", lost)
		if err := h.Err(); !errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrSessionLost) {
			t.Error(err)
		}
	}
	must.Report(t, v.session.Err())
}

// TestOnlyGrantsWithoutTheirZnodesAreLost: another client has deleted the znode of a grant,
// and may have created it again. The session continues, and the new znode does not change.
func TestOnlyGrantsWithoutTheirZnodesAreLost(t *testing.T) {
	for name, again := range map[string]bool{"deleted": false, "created again": true} {
		t.Run(name, func(t *testing.T) { onlyGrantsWithoutTheirZnodesAreLost(t, again) })
	}
}

func onlyGrantsWithoutTheirZnodesAreLost(t *testing.T, again bool) {
	v := survive(t)
	kept, held := v.holds("/kept"), v.holdsAll()
	operator := must.Get(lockAt(t, v.rival, "/operator").Acquire(ctx(t)))(t)
	v.suspend()
	var znodes []string
	for i, g := range held {
		znodes = append(znodes, g.Znode())
		err := operator.Write(ctx(t), recipes.Delete(g.Znode(), recipes.AnyVersion))
		if err == nil && again {
			err = operator.Write(ctx(t), recipes.Create(g.Znode(), []byte("theirs")))
		}
		if err != nil {
			t.Fatalf("%s: %v", holdings[i].name, err)
		}
	}
	made := v.nodes(znodes...)
	v.proceed()
	for i, g := range held {
		h := holdings[i]
		closes(t, h.name, g.Done())
		if err := g.Err(); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("%s: %v", h.name, err)
		}
		if err := g.Write(ctx(t)); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("%s: a write: %v", h.name, err)
		}
		_ = h.giveBack(ctx(t), g) // its error is not the subject
	}
	must.Report(t, errors.Join(kept.Err(), kept.Write(ctx(t)), kept.Release(ctx(t)), v.session.Err()))
	if now := v.nodes(znodes...); again && len(now) != len(znodes) || !slices.Equal(now, made) {
		t.Errorf("created as %q, now %q", made, now)
	}
}

// nodes returns those of the znodes that exist, with all their data.
func (v *surviving) nodes(znodes ...string) (all []string) {
	for _, n := range v.server.Tree() {
		if slices.Contains(znodes, n.Path) {
			all = append(all, fmt.Sprintf("%+v", n))
		}
	}
	return all
}
