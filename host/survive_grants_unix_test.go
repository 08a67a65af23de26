//go:build unix

package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// holding is a way of the catalog, and its recipe at a path.
type holding struct {
	grants.Way
	path         string
	mine, theirs grants.Entrance // opened in the plugin's session, and by the rival
	grant        recipes.Grant
}

// held opens the recipe of each way at a path of its own. A queue has an element to receive.
func (v *surviving) held(run string) (all []*holding) {
	v.Helper()
	for _, w := range grants.All() {
		h := &holding{Way: w, path: "/" + strings.ReplaceAll(w.Name, " ", "-") + run}
		h.mine, h.theirs = h.open(v, v.session, nil), h.open(v, v.rival, nil)
		switch w.Method {
		case "Queue.Receive":
			must.Get(zktest.QueueOf(v.T, v.rival, h.path, recipes.QueueConfig{}).Put(ctx(v), nil))(v)
		case "PriorityQueue.Receive":
			must.Get(must.Get(v.rival.PriorityQueue(h.path, recipes.QueueConfig{}))(v).Put(ctx(v), 7, nil))(v)
		}
		all = append(all, h)
	}
	return all
}

func (h *holding) open(v *surviving, s recipes.Client, joined func(recipes.Place)) grants.Entrance {
	v.Helper()
	return must.Get(h.Open(s, h.path, grants.Options{Name: "me", Data: []byte("me"), Revocable: true, Joined: joined}))(v)
}

// excludes reports whether a grant keeps the rival from the same grant.
func (h *holding) excludes() bool {
	return h.theirs.Try != nil && !strings.HasSuffix(h.Name, "reading")
}

// use makes the change that the grants of some recipes offer besides Write.
func use(ctx context.Context, g recipes.Grant) error {
	switch g := g.(type) {
	case recipes.Leadership:
		return g.Acknowledge(ctx, []byte("me"))
	case interface {
		Update(context.Context, []byte) error
	}:
		return g.Update(ctx, []byte("here"))
	}
	return nil
}

// queue is the wait queue of a way: the rival holds, the plugin's session waits, and the rival waits
// behind it.
type queue struct {
	*holding
	first  recipes.Grant
	turns  [2]<-chan zktest.Outcome[recipes.Grant]
	znodes []string
}

func (v *surviving) queue(h *holding) queue {
	v.Helper()
	h = &holding{Way: h.Way, path: h.path + "-queue"}
	h.theirs = h.open(v, v.rival, nil)
	q := queue{holding: h, first: must.Get(h.theirs.Get(ctx(v)))(v)}
	for i, s := range []recipes.Client{v.session, v.rival} {
		_, q.turns[i] = zktest.Waits(ctx(v), func(joined func(recipes.Place)) func(context.Context) (recipes.Grant, error) {
			return h.open(v, s, joined).Get
		})
	}
	q.znodes = q.contenders(v)
	return q
}

func (q queue) contenders(v *surviving) (znodes []string) {
	v.Helper()
	for _, c := range must.Get(q.theirs.Contenders(ctx(v)))(v) {
		znodes = append(znodes, c.Znode)
	}
	return znodes
}

// keepsTheOrder checks that the contenders have kept their znodes, and that each is granted in its turn.
func (q queue) keepsTheOrder(v *surviving) {
	v.Helper()
	if now := q.contenders(v); !slices.Equal(now, q.znodes) {
		v.Errorf("%s: the wait queue was %q, and is %q", q.Name, q.znodes, now)
	}
	last := q.first
	for _, granted := range q.turns {
		must.Do(v, q.GiveBack(ctx(v), last))
		now := <-granted
		must.Do(v, now.Err)
		if now.Got.Token() <= last.Token() {
			v.Errorf("%s: token %d after %d", q.Name, now.Got.Token(), last.Token())
		}
		last = now.Got
	}
	must.Do(v, q.GiveBack(ctx(v), last))
}

// TestCallsBetweenPlugins makes each call of each grant of the catalog while no plugin serves the
// session. The grants also survive an upgrade. Holds keep their token, and no other client is granted
// them. Contenders keep their places. Streams deliver each change once. There is a real server if one
// was found.
func TestCallsBetweenPlugins(t *testing.T) {
	t.Parallel()
	v, run := surviveReal(t)
	all := v.held(run)
	values, change := make([]<-chan string, len(streams)), make([]func(int) error, len(streams))
	// between makes calls while no plugin serves the session.
	between := func(what string, grant func(*holding) error, watch func(int, stream) error) {
		t.Helper()
		v.suspend()
		var calls sync.WaitGroup
		for _, h := range all {
			calls.Go(func() {
				if err := grant(h); err != nil {
					t.Errorf("%s: %s: %v", h.Name, what, err)
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
	tokens := map[*holding]recipes.Token{}
	areHeld := func(after string) {
		t.Helper()
		for _, h := range all {
			if h.grant.Err() != nil || h.grant.Token() != tokens[h] {
				t.Fatalf("%s, %s: token %d, it was %d: %v", h.Name, after, h.grant.Token(), tokens[h], h.grant.Err())
			}
			if !h.excludes() {
				continue
			}
			if _, err := h.theirs.Try(ctx(t)); !errors.Is(err, recipes.ErrContended) && !errors.Is(err, recipes.ErrNodeExists) {
				t.Errorf("%s, %s: the rival: %v", h.Name, after, err)
			}
		}
	}

	between("get", func(h *holding) (err error) {
		h.grant, err = h.mine.Get(ctx(t))
		return err
	}, func(i int, st stream) (err error) {
		path := "/watched-" + st.name + run
		change[i] = st.change(t.Context(), v.rival, path)
		values[i], err = st.watch(t.Context(), v.session, path)
		return err
	})
	delivered("")
	var queues []queue
	for _, h := range all {
		tokens[h] = h.grant.Token()
		if h.Kind != "" && !strings.HasSuffix(h.Name, "reading") {
			queues = append(queues, v.queue(h))
		}
	}
	between("write", func(h *holding) error {
		written := h.path + "-written"
		return h.grant.Write(ctx(t), recipes.Create(written, nil), recipes.Delete(written, recipes.AnyVersion))
	}, changes(1))
	delivered("1")
	areHeld("written")
	v.upgrade()
	areHeld("upgraded")
	between("use", func(h *holding) error { return use(ctx(t), h.grant) }, changes(2))
	delivered("2")
	between("give back", func(h *holding) error { return h.GiveBack(ctx(t), h.grant) }, func(int, stream) error { return nil })
	v.kill()
	for _, h := range all {
		closes(t, h.Name, h.grant.Done())
		if !h.excludes() {
			continue
		}
		next := must.Get(h.theirs.Try(ctx(t)))(t)
		if next.Token() <= tokens[h] {
			t.Errorf("%s: token %d after %d", h.Name, next.Token(), tokens[h])
		}
		must.Do(t, h.GiveBack(ctx(t), next))
	}
	for _, q := range queues {
		q.keepsTheOrder(v)
	}
	for i := range streams {
		must.Do(t, change[i](3)) // a repeated value would arrive before this one
	}
	delivered("3")
	must.Report(t, v.session.Close(ctx(t)))
}
