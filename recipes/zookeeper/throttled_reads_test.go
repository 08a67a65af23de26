package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

// A part of what was asked that could not be read is an error. What is there is never
// taken for nothing, and an answer is never a part of it.
func TestAnAnswerIsWholeOrAnError(t *testing.T) {
	for _, q := range append(questionsAboutLines(), questionsAboutValues()...) {
		t.Run(q.name, func(t *testing.T) {
			t.Parallel()
			var whole any
			for at := 0; ; at++ {
				var requests atomic.Int64
				synctest.Test(t, func(t *testing.T) {
					srv := zkserver.New(zkserver.Config{})
					t.Cleanup(func() { srv.Close() })
					ctx, cancel := context.WithCancel(t.Context())
					t.Cleanup(cancel)
					asks, other := openVirtual(t, srv), openVirtual(t, srv)
					ask := q.prepare(t, ctx, asks, other)
					synctest.Wait()
					srv.SetFault(func(r zkserver.Request) zkserver.Fault {
						if r.SessionID != asks.ID() {
							return zkserver.Fault{}
						}
						return zkserver.Fault{Throttle: requests.Add(1) == int64(at)}
					})
					answer, err := ask(ctx)
					synctest.Wait()
					srv.SetFault(nil)
					switch {
					case at == 0 && err != nil:
						t.Errorf("undisturbed: %v", err)
					case at == 0:
						whole = answer
					case err != nil && !errors.Is(err, recipes.ErrThrottled):
						t.Errorf("request %d is throttled, and the error is %v", at, err)
					case err == nil && !reflect.DeepEqual(answer, whole):
						t.Errorf("request %d is throttled, and the answer is %+v; want %+v", at, answer, whole)
					}
				})
				if t.Failed() || at > 0 && requests.Load() < int64(at) {
					return
				}
				if at == 0 && requests.Load() == 0 {
					t.Fatal("nothing was asked")
				}
			}
		})
	}
}

// shown is a list of contenders without what differs from run to run.
func shown(all []recipes.Contender, err error) (any, error) {
	var out []string
	for _, c := range all {
		out = append(out, fmt.Sprint(c.Kind, c.Dialect, c.Sequence, c.Token, c.Holds, c.Mode, c.Successor, string(c.Data)))
	}
	return out, err
}

func questionsAboutLines() (all []question) {
	// Two stand in line, the first holds.
	standing := func(name string, enter func(s recipes.Session, ctx context.Context, i int) error, ask func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error)) {
		all = append(all, question{name, func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			for i := range 3 {
				go func() {
					if err := enter(other, ctx, i); err != nil && ctx.Err() == nil && other.Err() == nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
			}
			return func(ctx context.Context) (any, error) { return shown(ask(asks, ctx)) }
		}})
	}
	for _, d := range []recipes.Dialect{recipes.ZooKeeper, recipes.Curator, recipes.Kazoo} {
		lock := func(s recipes.Session) recipes.Lock {
			l, _ := s.Lock("/l", recipes.LockConfig{Dialect: d, Data: []byte("x")})
			return l
		}
		standing(fmt.Sprint("lock, ", d), func(s recipes.Session, ctx context.Context, _ int) error {
			_, err := lock(s).Acquire(ctx)
			return err
		}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			return lock(s).Contenders(ctx)
		})
		shared := func(s recipes.Session) recipes.SharedLock {
			l, _ := s.SharedLock("/l", recipes.SharedLockConfig{Dialect: d})
			return l
		}
		standing(fmt.Sprint("shared lock, ", d), func(s recipes.Session, ctx context.Context, i int) (err error) {
			if i == 1 {
				_, err = shared(s).AcquireWrite(ctx)
			} else {
				_, err = shared(s).AcquireRead(ctx)
			}
			return err
		}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			return shared(s).Contenders(ctx)
		})
		semaphore := func(s recipes.Session) recipes.Semaphore {
			l, _ := s.Semaphore("/l", recipes.SemaphoreConfig{Dialect: d, Permits: 2})
			return l
		}
		standing(fmt.Sprint("semaphore, ", d), func(s recipes.Session, ctx context.Context, _ int) error {
			_, err := semaphore(s).Acquire(ctx)
			return err
		}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			return semaphore(s).Contenders(ctx)
		})
		election := func(s recipes.Session) recipes.Election {
			e, _ := s.Election("/l", recipes.ElectionConfig{Dialect: d})
			return e
		}
		standing(fmt.Sprint("election, ", d), func(s recipes.Session, ctx context.Context, i int) error {
			leads, err := election(s).Campaign(ctx, []byte("x"))
			if err == nil && d == recipes.ZooKeeper {
				err = leads.Acknowledge(ctx, []byte("y"))
			}
			return err
		}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			return election(s).Candidates(ctx)
		})
		standing(fmt.Sprint("leader, ", d), func(s recipes.Session, ctx context.Context, i int) error {
			leads, err := election(s).Campaign(ctx, []byte("x"))
			if err == nil && d == recipes.ZooKeeper {
				err = leads.Acknowledge(ctx, []byte("y"))
			}
			return err
		}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			l, err := election(s).Leader(ctx)
			l.Data = append(l.Data, fmt.Sprint(l.Acknowledged, string(l.Acknowledgement))...)
			return []recipes.Contender{l.Contender}, err
		})
		if d == recipes.ZooKeeper {
			standing("acknowledged leader", func(s recipes.Session, ctx context.Context, i int) error {
				leads, err := election(s).Campaign(ctx, []byte("x"))
				if err == nil {
					err = leads.Acknowledge(ctx, []byte("y"))
				}
				return err
			}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
				l, err := election(s).Acknowledged(ctx)
				l.Data = append(l.Data, fmt.Sprint(l.Acknowledged, string(l.Acknowledgement))...)
				return []recipes.Contender{l.Contender}, err
			})
		}
	}
	priority := func(s recipes.Session, at int) recipes.PriorityLock {
		l, _ := s.PriorityLock("/l", recipes.PriorityLockConfig{Priority: at})
		return l
	}
	standing("priority lock", func(s recipes.Session, ctx context.Context, i int) error {
		_, err := priority(s, 5-i).AcquireWrite(ctx)
		return err
	}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
		return priority(s, 0).Contenders(ctx)
	})
	return all
}

func questionsAboutValues() []question {
	first := func(ctx context.Context, ask func(context.Context) (any, error)) (any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return ask(ctx)
	}
	return []question{
		{"configuration", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Configuration](t)(other.Configuration("/c")), must[recipes.Configuration](t)(asks.Configuration("/c"))
			for _, key := range []string{"a", "a/b", "c"} {
				must[recipes.Revision](t)(theirs.Set(ctx, key, []byte(key), recipes.AnyRevision))
			}
			keys := func(all []recipes.Entry, err error) (any, error) {
				var out []string
				for _, e := range all {
					out = append(out, e.Key+string(e.Value))
				}
				return out, err
			}
			return func(ctx context.Context) (any, error) {
				all, err := keys(mine.Snapshot(ctx))
				if err != nil {
					return nil, err
				}
				watched, err := first(ctx, func(ctx context.Context) (any, error) {
					values, err := mine.WatchTree(ctx)
					if err != nil {
						return nil, err
					}
					return keys(<-values, nil)
				})
				if err != nil {
					return nil, err
				}
				e, err := mine.Get(ctx, "a/b")
				return fmt.Sprint(all, watched, string(e.Value)), err
			}
		}},
		{"group", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Group](t)(other.Group("/g", recipes.GroupConfig{})), must[recipes.Group](t)(asks.Group("/g", recipes.GroupConfig{}))
			for _, data := range []string{"1", "2", "3"} {
				must[recipes.Membership](t)(theirs.Join(ctx, []byte(data)))
			}
			return func(ctx context.Context) (any, error) {
				all, err := mine.Members(ctx)
				if err != nil {
					return nil, err
				}
				return first(ctx, func(ctx context.Context) (any, error) {
					values, err := mine.Watch(ctx)
					if err != nil {
						return nil, err
					}
					out := ""
					for _, m := range append(all, <-values...) {
						out += string(m.Data)
					}
					return out, nil
				})
			}
		}},
		{"names", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Names](t)(other.Names("/n")), must[recipes.Names](t)(asks.Names("/n"))
			must[recipes.Registration](t)(theirs.Register(ctx, "here", []byte("1")))
			if err := theirs.RegisterPersistent(ctx, "stays", []byte("2")); err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) (any, error) {
				all, err := mine.List(ctx)
				if err != nil {
					return nil, err
				}
				one, err := mine.Lookup(ctx, "stays")
				if err != nil {
					return nil, err
				}
				out := ""
				for _, r := range append(all, one) {
					out += r.Name + string(r.Data)
				}
				return out, nil
			}
		}},
		{"queue", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			cfg := recipes.QueueConfig{MaxDeliveries: 1}
			theirs, mine := queueOf(t, other, "/q", cfg), queueOf(t, asks, "/q", cfg)
			must[[]recipes.ElementID](t)(theirs.PutMany(ctx, []byte("dead"), []byte("received"), []byte("there")))
			if err := must[recipes.Delivery](t)(theirs.Receive(ctx)).Return(ctx); err != nil {
				t.Fatal(err)
			}
			must[recipes.Delivery](t)(theirs.Receive(ctx))
			return func(ctx context.Context) (any, error) {
				n, err := mine.Len(ctx)
				if err != nil {
					return nil, err
				}
				dead, err := mine.DeadLetters(ctx)
				if err != nil {
					return nil, err
				}
				e, err := mine.Peek(ctx)
				return fmt.Sprint(n, len(dead), string(e.Data)), err
			}
		}},
		{"numbers and barriers", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			must[int64](t)(counterAt(t, other, "/n").Add(ctx, 3))
			must[int64](t)(latchAt(t, other, "/l", 5).CountDown(ctx))
			if err := barrierAt(t, other, "/b").Set(ctx, nil); err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) (any, error) {
				n, err := counterAt(t, asks, "/n").Get(ctx)
				if err != nil {
					return nil, err
				}
				count, err := latchAt(t, asks, "/l", 5).Count(ctx)
				if err != nil {
					return nil, err
				}
				isSet, err := barrierAt(t, asks, "/b").IsSet(ctx)
				return fmt.Sprint(n, count, isSet), err
			}
		}},
		{"transaction", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs := transactionOf(t, other, recipes.OwnNodes)
			if err := theirs.Begin(ctx, []byte("payload"), "1", "2", "3"); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"1", "2"} {
				if err := must[recipes.Site](t)(theirs.Join(ctx, name)).Vote(ctx, recipes.VoteCommit); err != nil {
					t.Fatal(err)
				}
			}
			if err := barrierAt(t, other, theirs.Path()+"/s_2").Remove(ctx); err != nil { // it dies
				t.Fatal(err)
			}
			must[recipes.Decision](t)(theirs.Abort(ctx, "why"))
			return func(ctx context.Context) (any, error) {
				status, err := transactionOf(t, asks, "").Status(ctx)
				decision := status.Decision
				status.Decision = nil
				return fmt.Sprintf("%+v %+v", status, decision), err
			}
		}},
	}
}
