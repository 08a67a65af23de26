//go:build unix

package host_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// words has the values of a watch as text.
func words[T any](values <-chan T, err error, word func(T) string) (<-chan string, error) {
	if err != nil {
		return nil, err
	}
	told := make(chan string, 100)
	go func() {
		defer close(told)
		for v := range values {
			told <- word(v)
		}
	}()
	return told, nil
}

// stream is something that a session can watch. At first it tells "", and n when another
// session has changed it for the nth time.
type stream struct {
	name   string
	watch  func(context.Context, recipes.Session) (<-chan string, error)
	change func(context.Context, recipes.Session) (changed func(n int) error)
}

func setKey(ctx context.Context, s recipes.Session) func(n int) error {
	return func(n int) error {
		c, _ := s.Configuration("/c")
		_, err := c.Set(ctx, "key", fmt.Append(nil, n), recipes.AnyRevision)
		return err
	}
}

var streams = []stream{
	{"key", func(ctx context.Context, s recipes.Session) (<-chan string, error) {
		c, _ := s.Configuration("/c")
		values, err := c.Watch(ctx, "key")
		return words(values, err, func(e recipes.Entry) string { return string(e.Value) })
	}, setKey},
	{"configuration", func(ctx context.Context, s recipes.Session) (<-chan string, error) {
		c, _ := s.Configuration("/c")
		values, err := c.WatchTree(ctx)
		return words(values, err, func(es []recipes.Entry) (all string) {
			for _, e := range es {
				all += string(e.Value)
			}
			return all
		})
	}, setKey},
	{"name", func(ctx context.Context, s recipes.Session) (<-chan string, error) {
		names, _ := s.Names("/n")
		values, err := names.Watch(ctx, "it")
		return words(values, err, func(r recipes.Record) string { return string(r.Data) })
	}, func(ctx context.Context, s recipes.Session) func(n int) error {
		var r recipes.Registration
		return func(n int) (err error) {
			if names, _ := s.Names("/n"); r == nil {
				r, err = names.Register(ctx, "it", fmt.Append(nil, n))
				return err
			}
			return r.Update(ctx, fmt.Append(nil, n))
		}
	}},
	{"leader", func(ctx context.Context, s recipes.Session) (<-chan string, error) {
		e, _ := s.Election("/e", recipes.ElectionConfig{})
		values, err := e.Observe(ctx)
		return words(values, err, func(l recipes.Leader) string {
			if l.Acknowledged {
				return string(l.Acknowledgement)
			}
			return string(l.Data)
		})
	}, func(ctx context.Context, s recipes.Session) func(n int) error {
		var l recipes.Leadership
		return func(n int) (err error) {
			if e, _ := s.Election("/e", recipes.ElectionConfig{}); l == nil {
				l, err = e.Campaign(ctx, fmt.Append(nil, n))
				return err
			}
			return l.Acknowledge(ctx, fmt.Append(nil, n))
		}
	}},
	{"group", func(ctx context.Context, s recipes.Session) (<-chan string, error) {
		g, _ := s.Group("/g", recipes.GroupConfig{})
		values, err := g.Watch(ctx)
		return words(values, err, func(ms []recipes.Member) string {
			if len(ms) == 0 {
				return ""
			}
			return string(ms[0].Data)
		})
	}, func(ctx context.Context, s recipes.Session) func(n int) error {
		var m recipes.Membership
		return func(n int) (err error) {
			if g, _ := s.Group("/g", recipes.GroupConfig{Name: "it"}); m == nil {
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

// TestStreamsGoOnInTheNextPlugin: they tell what has changed meanwhile, nothing twice, and
// they go on when the next plugin loses the servers as it opens them.
func TestStreamsGoOnInTheNextPlugin(t *testing.T) {
	for _, st := range streams {
		t.Run(st.name, func(t *testing.T) {
			v := survive(t)
			told, err := st.watch(ctx(t), v.session)
			if err != nil {
				t.Fatal(err)
			}
			next := func(want string) {
				t.Helper()
				select {
				case now, open := <-told:
					if !open || now != want {
						t.Fatalf("told %q (open: %v), want %q", now, open, want)
					}
				case <-time.After(patience):
					t.Fatalf("not told %q", want)
				}
			}
			change := st.change(ctx(t), v.rival)
			step := func(n int) {
				t.Helper()
				if err := change(n); err != nil {
					t.Fatal(err)
				}
			}
			next("")
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
			step(1)
			next("1")
			v.kill()
			step(2)
			next("2")
			v.suspend()
			step(3)
			v.goOn()
			next("3")
			v.suspend()
			step(4)
			var cuts atomic.Int32
			v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				if r.SessionID == v.session.ID() && looks(r) {
					f.CloseBefore = cuts.Add(1) <= 2
				}
				return f
			})
			v.goOn()
			next("4")
			if cuts.Load() < 2 {
				t.Errorf("%d connections were cut", cuts.Load())
			}
			step(5)
			next("5")
			if len(told) > 0 {
				t.Errorf("told %q too", <-told)
			}
		})
	}
}
