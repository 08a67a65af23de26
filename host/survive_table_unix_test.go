//go:build unix

package host_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// changes reports whether a request is a write.
func changes(r zkserver.Request) bool {
	switch r.Op {
	case zkserver.OpCreate, zkserver.OpCreate2, zkserver.OpDelete, zkserver.OpSetData, zkserver.OpMulti:
		return true
	}
	return false
}

// TestCallsBetweenPlugins makes each call of each grant while no plugin serves the session. The
// grants also survive an upgrade. Holds keep their token, and no other client is granted them.
// Streams deliver each change once. There is a real server if one was found.
func TestCallsBetweenPlugins(t *testing.T) {
	t.Parallel()
	var v *surviving
	if ensembletest.Found() {
		v = surviveAt(t, ensembletest.Shared(t).Addrs())
	} else {
		v = survive(t)
	}
	run := uuid.NewString() // with -count, the real server has the znodes of earlier runs
	prepare(t, v.rival)
	values, change := make([]<-chan string, len(streams)), make([]func(int) error, len(streams))
	grants, tokens := make([]recipes.Grant, len(holdings)), make([]recipes.Token, len(holdings))
	// between makes calls while no plugin serves the session.
	between := func(what string, grant func(int, holding) error, watch func(int, stream) error) {
		t.Helper()
		v.suspend()
		var calls sync.WaitGroup
		for i, h := range holdings {
			calls.Go(func() {
				if err := grant(i, h); err != nil {
					t.Errorf("%s: %s: %v", h.name, what, err)
				}
			})
		}
		for i, st := range streams {
			calls.Go(func() { must.Report(t, watch(i, st)) })
		}
		v.proceed()
		calls.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	changes := func(n int) func(int, stream) error {
		return func(i int, _ stream) error { return change[i](n) }
	}
	delivered := func(want string) {
		t.Helper()
		for _, values := range values {
			observed{t, values}.next(want)
		}
	}
	areHeld := func(after string) {
		t.Helper()
		for i, h := range holdings {
			if g := grants[i]; g.Err() != nil || g.Token() != tokens[i] {
				t.Fatalf("%s, %s: token %d, it was %d: %v", h.name, after, g.Token(), tokens[i], g.Err())
			}
			h.isTaken(t, v.rival)
		}
	}

	between("get", func(i int, h holding) (err error) {
		grants[i], err = h.acquire(ctx(t), v.session)
		return err
	}, func(i int, st stream) (err error) {
		path := "/watched-" + st.name + run
		change[i] = st.change(t.Context(), v.rival, path)
		values[i], err = st.watch(t.Context(), v.session, path)
		return err
	})
	delivered("")
	for i, g := range grants {
		tokens[i] = g.Token()
	}
	between("write", func(i int, h holding) error {
		written := "/written-" + h.name + run
		return grants[i].Write(ctx(t), recipes.Create(written, nil), recipes.Delete(written, recipes.AnyVersion))
	}, changes(1))
	delivered("1")
	areHeld("written")
	v.upgrade()
	areHeld("upgraded")
	between("use", func(i int, _ holding) error { return use(ctx(t), grants[i]) }, changes(2))
	delivered("2")
	between("give back", func(i int, h holding) error { return h.giveBack(ctx(t), grants[i]) }, func(int, stream) error { return nil })
	v.kill()
	for i, h := range holdings {
		closes(t, h.name, grants[i].Done())
		if v.server != nil {
			v.nothingLeft(h.znodes)
		}
		h.isFree(t, v.rival, tokens[i])
		if i < len(streams) {
			must.Do(t, change[i](3)) // a repeated value would come before it
		}
	}
	delivered("3")
	must.Report(t, v.session.Close(ctx(t)))
}

// dies makes a call, and kills the plugin while it waits for the reply to a request that matches.
func (v *surviving) dies(at func(zkserver.Request) bool, call func() error) error {
	v.Helper()
	reached := v.unanswered(at)
	done := begin(call)
	closes(v, "the point", reached)
	v.kill()
	v.server.SetFault(nil)
	return <-done
}

// TestDeathsOfAResumedPlugin kills the plugin during each call of each recipe. Holds keep their
// token, no other client is granted them, guarded writes happen once, and nothing is left.
func TestDeathsOfAResumedPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	for _, h := range holdings {
		v.Run(h.name, func(t *testing.T) {
			v := v.in(t)
			prepare(t, v.rival)
			dies := func(call func() error) error {
				return v.dies(func(r zkserver.Request) bool { return changes(r) && strings.HasPrefix(r.Path, h.znodes) }, call)
			}
			var g recipes.Grant
			must.Do(t, dies(func() (err error) { g, err = h.acquire(ctx(t), v.session); return err }))
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
				err := dies(c)
				unknown := errors.Is(err, recipes.ErrUnknownOutcome) && !errors.Is(err, recipes.ErrSessionLost)
				if err != nil && !unknown {
					t.Errorf("%s: %v", what, err)
				}
				isHeld(what)
				return !unknown
			}
			written := "/written-" + h.name
			certain := made("write", func() error { return g.Write(ctx(t), recipes.Create(written, nil)) })
			if err := g.Write(ctx(t), recipes.Delete(written, recipes.AnyVersion)); err != nil && (certain || !errors.Is(err, recipes.ErrNoNode)) {
				t.Errorf("deleting the written znode: %v", err)
			}
			switch g.(type) {
			case recipes.Leadership, recipes.Membership, recipes.Registration:
				made("use", func() error { return use(ctx(t), g) })
			}
			lost := g.Done()
			if err := dies(func() error { return h.giveBack(ctx(t), g) }); err != nil {
				t.Errorf("given back: %v", err)
			}
			closes(t, "Done", lost)
			v.nothingLeft(h.znodes)
			h.isFree(t, v.rival, token)
		})
	}
	for _, st := range streams { // each change is delivered once
		v.Run("watch "+st.name, func(t *testing.T) {
			v, path := v.in(t), "/watched-"+st.name
			at := func(r zkserver.Request) bool { return reads(r) && strings.HasPrefix(r.Path, path) }
			o := observed{T: t}
			must.Do(t, v.dies(at, func() (err error) { o.values, err = st.watch(t.Context(), v.session, path); return err }))
			o.next("")
			change := st.change(t.Context(), v.rival, path)
			for n := 1; n <= 2; n++ {
				must.Do(t, v.dies(at, func() error { return change(n) }))
				o.next(strconv.Itoa(n))
			}
			must.Do(t, change(3)) // a repeated value would come before it
			o.next("3")
		})
	}
}
