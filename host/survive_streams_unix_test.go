//go:build unix

package host_test

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// words has the values of a watch as text. It leaves out one that differs from the last in
// what is not in the text: the root of a configuration is made before the first key. One
// that does not differ at all is told twice.
func words[T any](values <-chan T, err error, word func(T) string) (<-chan string, error) {
	if err != nil {
		return nil, err
	}
	told := make(chan string, 100)
	go func() {
		defer close(told)
		var last []T
		for v := range values {
			if last == nil || word(v) != word(last[0]) || reflect.DeepEqual(v, last[0]) {
				told <- word(v)
			}
			last = []T{v}
		}
	}()
	return told, nil
}

// stream is something that a session can watch at a path. At first it tells "", and n when
// another session has changed it for the nth time.
type stream struct {
	name   string
	watch  func(context.Context, recipes.Client, string) (<-chan string, error)
	change func(context.Context, recipes.Client, string) (changed func(n int) error)
}

func setKey(ctx context.Context, s recipes.Client, path string) func(n int) error {
	return func(n int) error {
		c, _ := s.Configuration(path)
		_, err := c.Set(ctx, "key", fmt.Append(nil, n), recipes.AnyRevision)
		return err
	}
}

var streams = []stream{
	{"key", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		c, _ := s.Configuration(path)
		values, err := c.Watch(ctx, "key")
		return words(values, err, func(e recipes.Entry) string { return string(e.Value) })
	}, setKey},
	{"configuration", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		c, _ := s.Configuration(path)
		values, err := c.WatchTree(ctx)
		return words(values, err, func(es []recipes.Entry) (all string) {
			for _, e := range es {
				all += string(e.Value)
			}
			return all
		})
	}, setKey},
	{"name", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		names, _ := s.Names(path)
		values, err := names.Watch(ctx, "it")
		return words(values, err, func(r recipes.Record) string { return string(r.Data) })
	}, func(ctx context.Context, s recipes.Client, path string) func(n int) error {
		var r recipes.Registration
		return func(n int) (err error) {
			if names, _ := s.Names(path); r == nil {
				r, err = names.Register(ctx, "it", fmt.Append(nil, n))
				return err
			}
			return r.Update(ctx, fmt.Append(nil, n))
		}
	}},
	{"leader", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		e, _ := s.Election(path, recipes.ElectionConfig{})
		values, err := e.Observe(ctx)
		return words(values, err, func(l recipes.Leader) string {
			if l.Acknowledged {
				return string(l.Acknowledgement)
			}
			return string(l.Data)
		})
	}, func(ctx context.Context, s recipes.Client, path string) func(n int) error {
		var l recipes.Leadership
		return func(n int) (err error) {
			if e, _ := s.Election(path, recipes.ElectionConfig{}); l == nil {
				l, err = e.Campaign(ctx, fmt.Append(nil, n))
				return err
			}
			return l.Acknowledge(ctx, fmt.Append(nil, n))
		}
	}},
	{"group", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		g, _ := s.Group(path, recipes.GroupConfig{})
		values, err := g.Watch(ctx)
		return words(values, err, func(ms []recipes.Member) string {
			if len(ms) == 0 {
				return ""
			}
			return string(ms[0].Data)
		})
	}, func(ctx context.Context, s recipes.Client, path string) func(n int) error {
		var m recipes.Membership
		return func(n int) (err error) {
			if g, _ := s.Group(path, recipes.GroupConfig{Name: "it"}); m == nil {
				m, err = g.Join(ctx, fmt.Append(nil, n))
				return err
			}
			return m.Update(ctx, fmt.Append(nil, n))
		}
	}},
}

// looks reports whether a request reads what a stream tells.
func looks(r zkserver.Request) bool {
	switch r.Op {
	case zkserver.OpGetData, zkserver.OpGetChildren, zkserver.OpGetChildren2, zkserver.OpExists:
		return true
	}
	return false
}

// told is what a watch tells.
type told struct {
	*testing.T
	values <-chan string
}

func (o told) next(want string) {
	o.Helper()
	select {
	case now, open := <-o.values:
		if !open || now != want {
			o.Fatalf("told %q (open: %v), want %q", now, open, want)
		}
	case <-time.After(patience):
		o.Fatalf("not told %q", want)
	}
}

// meets has the plugin die at that moment, when the stream is opened and at each of two
// changes. Each value is told once, in order.
func (st stream) meets(t *testing.T, v *surviving, m moment) {
	path := "/watched-" + m.name + "-" + st.name
	at := func(r zkserver.Request) bool { return looks(r) && strings.HasPrefix(r.Path, path) }
	o := told{T: t}
	must.Do(t, m.make(v, deed{call: func() (err error) { o.values, err = st.watch(t.Context(), v.session, path); return err }, at: at}))
	o.next("")
	change := st.change(t.Context(), v.rival, path)
	for n := 1; n <= 2; n++ {
		must.Do(t, m.make(v, deed{call: func() error { return change(n) }, at: at, theirs: true}))
		o.next(strconv.Itoa(n))
	}
	if err := change(3); err != nil { // what is told twice comes before it
		t.Fatal(err)
	}
	o.next("3")
}

// TestStreamsTellNothingTwice: neither when nothing has changed, nor when the next plugin
// loses the servers as it opens them.
func TestStreamsTellNothingTwice(t *testing.T) {
	for _, st := range streams {
		t.Run(st.name, func(t *testing.T) {
			v, o := survive(t), told{T: t}
			var err error
			if o.values, err = st.watch(ctx(t), v.session, "/watched"); err != nil {
				t.Fatal(err)
			}
			o.next("")
			for range 2 { // nothing has changed
				looked := make(chan struct{})
				var once sync.Once
				v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
					if r.SessionID == v.session.ID() && looks(r) {
						once.Do(func() { close(looked) })
					}
					return f
				})
				v.kill()
				closes(t, "the watch of the next plugin", looked)
			}
			v.server.SetFault(nil)
			v.hear() // takes longer than what the watch would tell
			change := st.change(ctx(t), v.rival, "/watched")
			v.suspend()
			must.Do(t, change(1))
			var cuts atomic.Int32
			v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				if r.SessionID == v.session.ID() && looks(r) {
					f.CloseBefore = cuts.Add(1) <= 2
				}
				return f
			})
			v.goOn()
			o.next("1")
			if cuts.Load() < 2 {
				t.Errorf("%d connections were cut", cuts.Load())
			}
			must.Do(t, change(2))
			o.next("2")
			if len(o.values) > 0 {
				t.Errorf("told %q too", <-o.values)
			}
		})
	}
}
