package zookeeper_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// question is something that is only read. prepare makes what there is to read, in another
// session, and returns how to ask.
type question struct {
	name    string
	prepare func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error)
}

// A question of which a request was disturbed is answered rightly, or the error says what
// has happened. What is there is never taken for nothing, and an answer is never a part of
// it. Nothing is left of the question, and asked again it is answered.
func TestADisturbedQuestionIsAnsweredOrSaysWhy(t *testing.T) {
	var cases atomic.Int64
	t.Run("questions", func(t *testing.T) {
		for _, q := range slices.Concat(questionsAboutLines(), questionsAboutValues(), questionsAboutChanges()) {
			t.Run(q.name, func(t *testing.T) {
				t.Parallel()
				var whole any
				var left remains
				disturb(t, &cases, func(t *testing.T, d disturbance, at int64) int64 {
					return q.disturbed(t, d, at, &whole, &left)
				})
			})
		}
	})
	fmt.Printf("disturbed questions: %d cases\n", cases.Load())
}

// disturbed asks with the disturbance at that request, and then once more. whole and left
// are what an undisturbed run has found.
func (q question) disturbed(t *testing.T, d disturbance, at int64, whole *any, left *remains) (requests int64) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		t.Cleanup(func() { srv.Close() })
		ctx, end := context.WithTimeout(t.Context(), patience)
		t.Cleanup(end)
		asks, other := openVirtual(t, srv), openVirtual(t, srv)
		ask := q.prepare(t, ctx, asks, other)
		synctest.Wait()

		asking, cancel := context.WithCancel(ctx)
		defer cancel()
		sent := d.strike(srv, asks, at, cancel)
		answer, err := ask(asking)
		requests = sent.Load()
		calm()
		srv.SetFault(nil)
		switch {
		case at == 0 && err != nil:
			t.Fatalf("undisturbed: %v", err)
		case at == 0:
			*whole = answer
		case err != nil && !d.may(err):
			t.Errorf("the error is %v", err)
		case err == nil && !reflect.DeepEqual(answer, *whole):
			t.Errorf("the answer is %+v; want %+v", answer, *whole)
		}
		cancel()
		if answer, err := ask(ctx); err != nil || !reflect.DeepEqual(answer, *whole) {
			t.Errorf("asked again: %+v, %v; want %+v", answer, err, *whole)
		}
		now := remaining(srv)
		if at == 0 {
			*left = now
		}
		now.compare(t, d, *left)
		for _, n := range srv.Tree() {
			if n.Stat.EphemeralOwner == asks.ID() {
				t.Errorf("left behind: %s", n.Path)
			}
		}
	})
	return requests
}

// questionsAboutValues are about all that nobody stands in line for.
func questionsAboutValues() []question {
	// asked is a question about what the other session has made.
	asked := func(name string, make func(t *testing.T, ctx context.Context, s recipes.Session), ask func(t *testing.T, ctx context.Context, s recipes.Session) (any, error)) question {
		return question{name, func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			make(t, ctx, other)
			return func(ctx context.Context) (any, error) { return ask(t, ctx, asks) }
		}}
	}
	nothing := func(*testing.T, context.Context, recipes.Session) {}
	keys := func(t *testing.T, ctx context.Context, s recipes.Session) {
		for _, key := range []string{"a", "a/b", "c"} {
			must[recipes.Revision](t)(configAt(t, s, "/c").Set(ctx, key, []byte(key), recipes.AnyRevision))
		}
	}
	members := func(t *testing.T, ctx context.Context, s recipes.Session) {
		for _, data := range []string{"1", "2", "3"} {
			must[recipes.Membership](t)(must[recipes.Group](t)(s.Group("/g", recipes.GroupConfig{})).Join(ctx, []byte(data)))
		}
	}
	names := func(t *testing.T, ctx context.Context, s recipes.Session) {
		n := must[recipes.Names](t)(s.Names("/n"))
		must[recipes.Registration](t)(n.Register(ctx, "here", []byte("1")))
		if err := n.RegisterPersistent(ctx, "stays", []byte("2")); err != nil {
			t.Fatal(err)
		}
	}
	all := []question{
		asked("key", keys, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			e, err := configAt(t, s, "/c").Get(ctx, "a/b")
			return string(e.Value), err
		}),
		asked("snapshot", keys, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			all, err := configAt(t, s, "/c").Snapshot(ctx)
			return entriesShown(all), err
		}),
		asked("snapshot of nothing", nothing, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			all, err := configAt(t, s, "/c").Snapshot(ctx)
			return entriesShown(all), err
		}),
		asked("members", members, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			all, err := must[recipes.Group](t)(s.Group("/g", recipes.GroupConfig{})).Members(ctx)
			return membersShown(all), err
		}),
		asked("name", names, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			r, err := must[recipes.Names](t)(s.Names("/n")).Lookup(ctx, "stays")
			return r.Name + string(r.Data), err
		}),
		asked("names", names, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			all, err := must[recipes.Names](t)(s.Names("/n")).List(ctx)
			out := ""
			for _, r := range all {
				out += r.Name + string(r.Data)
			}
			return out, err
		}),
		asked("number", func(t *testing.T, ctx context.Context, s recipes.Session) {
			must[int64](t)(counterAt(t, s, "/n").Add(ctx, 3))
		}, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			return counterAt(t, s, "/n").Get(ctx)
		}),
		asked("latch", func(t *testing.T, ctx context.Context, s recipes.Session) {
			must[int64](t)(latchAt(t, s, "/l", 5).CountDown(ctx))
		}, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			return latchAt(t, s, "/l", 5).Count(ctx)
		}),
		asked("barrier", func(t *testing.T, ctx context.Context, s recipes.Session) {
			if err := barrierAt(t, s, "/b").Set(ctx, nil); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			return barrierAt(t, s, "/b").IsSet(ctx)
		}),
		asked("all lines", func(t *testing.T, ctx context.Context, s recipes.Session) {
			m := must[recipes.Semaphore](t)(s.Semaphore("/l", recipes.SemaphoreConfig{Permits: 2}))
			must[recipes.Hold](t)(m.Acquire(ctx))
			must[recipes.Hold](t)(m.Acquire(ctx))
		}, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			lines, err := s.Contenders(ctx, "/l")
			all, _ := shown(lines.Contenders, nil)
			return fmt.Sprint(all, lines.Permits, lines.Unknown), err
		}),
		asked("transaction", func(t *testing.T, ctx context.Context, s recipes.Session) {
			theirs := transactionOf(t, s, recipes.OwnNodes)
			if err := theirs.Begin(ctx, []byte("payload"), "1", "2", "3"); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"1", "2"} {
				if err := must[recipes.Site](t)(theirs.Join(ctx, name)).Vote(ctx, recipes.VoteCommit); err != nil {
					t.Fatal(err)
				}
			}
			if err := barrierAt(t, s, theirs.Path()+"/s_2").Remove(ctx); err != nil { // it dies
				t.Fatal(err)
			}
			must[recipes.Decision](t)(theirs.Abort(ctx, "why"))
		}, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
			status, err := transactionOf(t, s, "").Status(ctx)
			decision := status.Decision
			status.Decision = nil
			return fmt.Sprintf("%+v %+v", status, decision), err
		}),
	}
	for _, dialect := range recipes.Dialects() {
		cfg := recipes.QueueConfig{Dialect: dialect}
		if dialect == recipes.DefaultDialect {
			cfg.MaxDeliveries = 1
		}
		filled := func(t *testing.T, ctx context.Context, s recipes.Session) {
			q := queueOf(t, s, "/q", cfg)
			must[[]recipes.ElementID](t)(q.PutMany(ctx, []byte("first"), []byte("second"), []byte("third")))
			if dialect == recipes.DefaultDialect { // one is dead, and one is claimed
				if err := must[recipes.Delivery](t)(q.Receive(ctx)).Return(ctx); err != nil {
					t.Fatal(err)
				}
				must[recipes.Delivery](t)(q.Receive(ctx))
			}
		}
		all = append(all,
			asked("length of a queue, "+string(dialect), filled, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
				return queueOf(t, s, "/q", cfg).Len(ctx)
			}),
			asked("first of a queue, "+string(dialect), filled, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
				e, err := queueOf(t, s, "/q", cfg).Peek(ctx)
				return string(e.Data), err
			}),
		)
		if dialect == recipes.DefaultDialect {
			all = append(all, asked("dead letters", filled, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
				dead, err := queueOf(t, s, "/q", cfg).DeadLetters(ctx)
				out := ""
				for _, e := range dead {
					out += string(e.Data)
				}
				return out, err
			}))
		}
		if dialect != recipes.Curator { // which has none
			put := func(t *testing.T, ctx context.Context, s recipes.Session) {
				q := must[recipes.PriorityQueue](t)(s.PriorityQueue("/q", recipes.QueueConfig{Dialect: dialect}))
				for p := range 3 {
					must[recipes.ElementID](t)(q.Put(ctx, 9-p, fmt.Append(nil, p)))
				}
			}
			all = append(all, asked("first of a priority queue, "+string(dialect), put, func(t *testing.T, ctx context.Context, s recipes.Session) (any, error) {
				e, err := must[recipes.PriorityQueue](t)(s.PriorityQueue("/q", recipes.QueueConfig{Dialect: dialect})).Peek(ctx)
				return fmt.Sprint(e.Priority, string(e.Data)), err
			}))
		}
	}
	return all
}

func entriesShown(all []recipes.Entry) string {
	out := ""
	for _, e := range all {
		out += e.Key + "=" + string(e.Value) + " "
	}
	return out
}

func membersShown(all []recipes.Member) string {
	out := ""
	for _, m := range all {
		out += string(m.Data) + " "
	}
	return out
}

// following reads a stream: first what there is, all of it, and then what the other session
// changes while it is read. A stream that ends early has to have a reason that the caller
// knows.
func following[T any](ctx context.Context, open func(context.Context) (<-chan T, error), show func(T) string, first string, change func() error, then string) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	values, err := open(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	defer func() {
		cancel()
		for range values { // until it is closed
		}
	}()
	ended := func() error { return cmp.Or(ctx.Err(), errors.New("the stream has ended")) }
	v, more := <-values
	if !more {
		return nil, ended()
	}
	if show(v) != first {
		return nil, fmt.Errorf("the first value is %q; want %q", show(v), first)
	}
	synctest.Wait()
	if err := change(); err != nil {
		return nil, err
	}
	for v := range values {
		if show(v) == then {
			return first + then, nil
		}
	}
	return nil, ended()
}

// questionsAboutChanges are about what changes while it is read.
func questionsAboutChanges() []question {
	return []question{
		{"watch of a key", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := configAt(t, other, "/c"), configAt(t, asks, "/c")
			set := func(value string) error {
				_, err := theirs.Set(ctx, "a", []byte(value), recipes.AnyRevision)
				return err
			}
			return func(asking context.Context) (any, error) {
				if err := set("1"); err != nil {
					return nil, err
				}
				return following(asking, func(ctx context.Context) (<-chan recipes.Entry, error) { return mine.Watch(ctx, "a") },
					func(e recipes.Entry) string { return string(e.Value) }, "1", func() error { return set("2") }, "2")
			}
		}},
		{"watch of a tree", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := configAt(t, other, "/c"), configAt(t, asks, "/c")
			set := func(value string) error {
				_, err := theirs.Set(ctx, "a/b", []byte(value), recipes.AnyRevision)
				return err
			}
			return func(asking context.Context) (any, error) {
				if err := set("1"); err != nil {
					return nil, err
				}
				return following(asking, mine.WatchTree, entriesShown, "= a= a/b=1 ", func() error {
					if err := set("2"); err != nil {
						return err
					}
					_, err := theirs.Set(ctx, "c", []byte("3"), recipes.AnyRevision)
					if err == nil {
						err = theirs.Delete(ctx, "c", recipes.AnyRevision)
					}
					return err
				}, "= a= a/b=2 ")
			}
		}},
		{"watch of a group", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Group](t)(other.Group("/g", recipes.GroupConfig{})), must[recipes.Group](t)(asks.Group("/g", recipes.GroupConfig{}))
			for _, data := range []string{"1", "2"} {
				must[recipes.Membership](t)(theirs.Join(ctx, []byte(data)))
			}
			return func(asking context.Context) (any, error) {
				var third recipes.Membership
				defer func() {
					if third != nil {
						if err := third.Leave(ctx); err != nil {
							t.Error(err)
						}
					}
				}()
				return following(asking, mine.Watch, membersShown, "1 2 ", func() (err error) {
					third, err = theirs.Join(ctx, []byte("3"))
					return err
				}, "1 2 3 ")
			}
		}},
		{"watch of a name", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Names](t)(other.Names("/n")), must[recipes.Names](t)(asks.Names("/n"))
			must[recipes.Registration](t)(theirs.Register(ctx, "another", nil))
			return func(asking context.Context) (any, error) {
				var registered recipes.Registration
				defer func() {
					if registered != nil {
						if err := registered.Unregister(ctx); err != nil {
							t.Error(err)
						}
					}
				}()
				return following(asking, func(ctx context.Context) (<-chan recipes.Record, error) { return mine.Watch(ctx, "n") },
					func(r recipes.Record) string { return r.Name + string(r.Data) }, "", func() (err error) {
						registered, err = theirs.Register(ctx, "n", []byte("1"))
						return err
					}, "n1")
			}
		}},
		{"observed leader", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Election](t)(other.Election("/l", recipes.ElectionConfig{})), must[recipes.Election](t)(asks.Election("/l", recipes.ElectionConfig{}))
			return func(asking context.Context) (any, error) {
				leads := must[recipes.Leadership](t)(theirs.Campaign(ctx, []byte("1")))
				defer func() {
					if err := leads.Resign(ctx); err != nil {
						t.Error(err)
					}
				}()
				return following(asking, mine.Observe, func(l recipes.Leader) string {
					return fmt.Sprint(string(l.Data), l.Acknowledged, string(l.Acknowledgement))
				}, "1false", func() error { return leads.Acknowledge(ctx, []byte("y")) }, "1truey")
			}
		}},
		{"awaited acknowledgement", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Election](t)(other.Election("/l", recipes.ElectionConfig{})), must[recipes.Election](t)(asks.Election("/l", recipes.ElectionConfig{}))
			return func(asking context.Context) (any, error) {
				leads := must[recipes.Leadership](t)(theirs.Campaign(ctx, []byte("1")))
				answered := make(chan error, 1)
				var l recipes.Leader
				go func() {
					var err error
					l, err = mine.Acknowledged(asking)
					answered <- err
				}()
				synctest.Wait()
				acknowledged := leads.Acknowledge(ctx, []byte("y"))
				err := <-answered
				if ended := errors.Join(acknowledged, leads.Resign(ctx)); ended != nil {
					t.Error(ended)
				}
				return string(l.Data) + string(l.Acknowledgement), err
			}
		}},
	}
}
