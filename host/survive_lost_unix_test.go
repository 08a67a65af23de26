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

// remove deletes a znode as an operator may.
func (v *surviving) remove(znode string) {
	v.Helper()
	by := must.Get(lockAt(v.T, v.rival, "/operator").Acquire(ctx(v)))(v)
	must.Do(v, errors.Join(by.Write(ctx(v), recipes.Delete(znode, recipes.AnyVersion)), by.Release(ctx(v))))
}

// TestALossWithoutAPluginIsTold: by the next plugin, as is one after that.
func TestALossWithoutAPluginIsTold(t *testing.T) {
	v := survive(t)
	for _, meanwhile := range []bool{true, false} {
		h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
		lost := h.Done()
		if meanwhile {
			v.suspend()
			v.remove(h.Znode())
			v.goOn()
		} else {
			v.kill()
			must.Do(t, h.Write(ctx(t)))
			v.kill() // when the first one is known to watch
			v.remove(h.Znode())
		}
		closes(t, "Done", lost)
		if err := h.Err(); !errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrSessionLost) {
			t.Error(err)
		}
	}
	must.Report(t, v.session.Err())
}

// TestWhatCannotBeTakenUpIsLostAlone: another client has deleted the znode of a grant, and
// may have created it again. The session goes on, and what was created stays as it is.
func TestWhatCannotBeTakenUpIsLostAlone(t *testing.T) {
	for name, again := range map[string]bool{"deleted": false, "created again": true} {
		t.Run(name, func(t *testing.T) { whatCannotBeTakenUpIsLostAlone(t, again) })
	}
}

func whatCannotBeTakenUpIsLostAlone(t *testing.T, again bool) {
	v := survive(t)
	prepare(t, v.rival)
	kept, err := lockAt(t, v.session, "/kept").Acquire(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	held := make([]recipes.Grant, len(holdings))
	for i, h := range holdings {
		if held[i], err = h.get(ctx(t), v.session); err != nil {
			t.Fatalf("%s: %v", h.name, err)
		}
	}
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
	made := v.look(znodes)
	v.goOn()
	for i, g := range held {
		h := holdings[i]
		closes(t, h.name, g.Done())
		if err := g.Err(); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("%s: %v", h.name, err)
		}
		if err := g.Write(ctx(t)); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("%s: a write: %v", h.name, err)
		}
		_ = h.giveBack(ctx(t), g) // says that it is gone, or nothing
	}
	must.Report(t, errors.Join(kept.Err(), kept.Write(ctx(t)), kept.Release(ctx(t)), v.session.Err()))
	if now := v.look(znodes); again && len(now) != len(znodes) || !slices.Equal(now, made) {
		t.Errorf("made as %q, then they are %q", made, now)
	}
}

// look returns all that the server has of those znodes that exist.
func (v *surviving) look(znodes []string) (all []string) {
	for _, n := range v.server.Tree() {
		if slices.Contains(znodes, n.Path) {
			all = append(all, fmt.Sprintf("%+v", n))
		}
	}
	return all
}
