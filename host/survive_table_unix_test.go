//go:build unix

package host_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// interrupted is a call before, during or after which the plugin dies.
type interrupted struct {
	call func() error
	at   func(zkserver.Request) bool // the request in which the plugin dies, if it dies during the call
	// theirs: another session makes the call, and needs no plugin.
	theirs bool
}

// A moment is a time at which a plugin dies. run makes the call and kills the plugin.
type moment struct {
	name string
	run  func(v *surviving, c interrupted) error
	// unknown: a change can have an unknown outcome.
	unknown bool
}

var moments = []moment{
	{"before", func(v *surviving, c interrupted) (err error) {
		v.suspend()
		done := begin(c.call)
		if c.theirs {
			err = <-done
			v.proceed()
			return err
		}
		v.proceed()
		return <-done
	}, false},
	{"during", func(v *surviving, c interrupted) error {
		if v.server == nil {
			done := begin(c.call)
			v.kill()
			return <-done
		}
		reached := v.unanswered(c.at)
		done := begin(c.call)
		closes(v, "the point", reached)
		v.kill()
		v.server.SetFault(nil)
		return <-done
	}, true},
	{"after", func(v *surviving, c interrupted) error {
		err := c.call()
		v.kill()
		return err
	}, false},
}

// changes reports whether a request is a write.
func changes(r zkserver.Request) bool {
	switch r.Op {
	case zkserver.OpCreate, zkserver.OpCreate2, zkserver.OpDelete, zkserver.OpSetData, zkserver.OpMulti:
		return true
	}
	return false
}

// TestDeathsOfAResumedPlugin kills the plugin before, during and after each call of each
// recipe. Holds keep their token, no other client is granted them, guarded writes happen once,
// and nothing is left. Watches report each change once: see stream.meets.
func TestDeathsOfAResumedPlugin(t *testing.T) {
	t.Parallel()
	for _, m := range moments {
		t.Run("embedded/"+m.name, func(t *testing.T) {
			t.Parallel()
			m.deathsOfAResumedPlugin(survive(t))
		})
	}
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		v, moments := surviveAt(t, ensembletest.Shared(t).Addrs()), moments
		if !testall.On() {
			moments = moments[1:2] // during a call
		}
		for _, m := range moments { // one after the other: they use the same paths
			t.Run(m.name, func(t *testing.T) { m.deathsOfAResumedPlugin(v.in(t)) })
		}
	})
}

func (m moment) deathsOfAResumedPlugin(v *surviving) {
	for _, st := range streams {
		v.Run("watch "+st.name, func(t *testing.T) { st.meets(t, v.in(t), m) })
	}
	for _, h := range holdings {
		v.Run(h.name, func(t *testing.T) {
			v := v.in(t)
			prepare(t, v.rival)
			call := func(c func() error) interrupted {
				return interrupted{call: c, at: func(r zkserver.Request) bool { return changes(r) && strings.HasPrefix(r.Path, h.path) }}
			}
			var g recipes.Grant
			must.Do(t, m.run(v, call(func() (err error) { g, err = h.get(ctx(t), v.session); return err })))
			token, znode := g.Token(), g.Znode()
			isHeld := func(after string) {
				t.Helper()
				if err := g.Err(); err != nil || g.Token() != token || g.Znode() != znode {
					t.Fatalf("%s: %s with %d, it had %s with %d: %v", after, g.Znode(), g.Token(), znode, token, err)
				}
				h.isTaken(t, v.rival)
			}
			isHeld("granted")
			made := func(what string, c func() error) (certain bool) {
				t.Helper()
				err := m.run(v, call(c))
				unknown := m.unknown && errors.Is(err, recipes.ErrUnknownOutcome) && !errors.Is(err, recipes.ErrSessionLost)
				if err != nil && !unknown {
					t.Errorf("%s: %v", what, err)
				}
				isHeld(what)
				return !unknown
			}
			written := fmt.Sprintf("/written-%s-%s-%d", m.name, h.name, token)
			certain := made("write", func() error { return g.Write(ctx(t), recipes.Create(written, nil)) })
			if err := g.Write(ctx(t), recipes.Delete(written, recipes.AnyVersion)); err != nil && (certain || !errors.Is(err, recipes.ErrNoNode)) {
				t.Errorf("deleting the written znode: %v", err)
			}
			switch g.(type) {
			case recipes.Leadership, recipes.Membership, recipes.Registration:
				made("use", func() error { return use(ctx(t), g) })
			}
			lost := g.Done()
			if err := m.run(v, call(func() error { return h.giveBack(ctx(t), g) })); err != nil {
				t.Errorf("given back: %v", err)
			}
			closes(t, "Done", lost)
			if v.server != nil {
				v.nothingLeft(h.path)
			}
			if h.rival != nil {
				next, err := h.rival(ctx(t), v.rival)
				if err == nil {
					err = h.giveBack(ctx(t), next)
				}
				if err != nil {
					t.Fatalf("the rival, after the release: %v", err)
				}
				if next.Token() <= token {
					t.Errorf("token %d after %d", next.Token(), token)
				}
			}
		})
	}
}
