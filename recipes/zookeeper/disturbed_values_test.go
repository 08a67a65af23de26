package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// consumer is a queue of any kind.
type consumer struct {
	recipes.Consumer
	put func(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error)
}

// consumerAt is the queue at latePath, or the priority queue.
func consumerAt(l *late, s recipes.Session, cfg recipes.QueueConfig, priority bool) consumer {
	if !priority {
		q := queueOf(l.T, s, latePath, cfg)
		return consumer{q, q.PutMany}
	}
	q := must[recipes.PriorityQueue](l.T)(s.PriorityQueue(latePath, cfg))
	return consumer{q, func(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error) {
		return q.PutMany(ctx, 5, data...)
	}}
}

// holding reports whether an element with that data is in the queue, or among its dead
// letters.
func (l *late) holding(data string) bool {
	return slices.ContainsFunc(l.srv.Tree(), func(n zkserver.Node) bool {
		return strings.HasPrefix(n.Path, latePath+"/") && string(n.Data) == data
	})
}

// disturbedQueues are about elements: each is put once and goes to one.
func disturbedQueues() (all []deed) {
	for _, kind := range []struct {
		name     string
		cfg      recipes.QueueConfig
		priority bool
	}{
		{"a queue", recipes.QueueConfig{}, false},
		{"a priority queue", recipes.QueueConfig{}, true},
		{"a queue of Curator's", recipes.QueueConfig{Dialect: recipes.Curator}, false},
		{"a queue of kazoo's", recipes.QueueConfig{Dialect: recipes.Kazoo}, false},
	} {
		at := func(l *late, s recipes.Session) consumer { return consumerAt(l, s, kind.cfg, kind.priority) }
		take := func(ctx context.Context, q consumer, want string) error {
			e, err := q.Take(ctx)
			if err == nil && string(e.Data) != want {
				err = fmt.Errorf("taken: %q; want %q", e.Data, want)
			}
			return err
		}
		all = append(all,
			deed{"put into " + kind.name, func(l *late, ctx context.Context) doing {
				return doing{
					act: func(acting context.Context) error {
						_, err := at(l, l.victim).put(acting, []byte("1"), []byte("2"))
						return err
					},
					happened: func() bool { return l.holding("2") },
					once:     true,
					after: func() error {
						q := at(l, l.other)
						return errors.Join(take(ctx, q, "1"), take(ctx, q, "2"))
					},
				}
			}},
			deed{"take from " + kind.name, func(l *late, ctx context.Context) doing {
				must[[]recipes.ElementID](l.T)(at(l, l.other).put(ctx, []byte("1"), []byte("2")))
				q := at(l, l.victim)
				return doing{
					act:      func(acting context.Context) error { return take(acting, q, "1") },
					happened: func() bool { return !l.holding("1") },
					once:     true,
					after:    func() error { return take(ctx, at(l, l.other), "2") },
				}
			}},
			deed{"wait for an element of " + kind.name, func(l *late, ctx context.Context) doing {
				return doing{
					act: func(acting context.Context) error {
						return whileWaiting(func() error { return take(acting, at(l, l.victim), "1") }, func() error {
							if l.holding("1") {
								return nil
							}
							_, err := at(l, l.other).put(ctx, []byte("1"))
							return err
						})
					},
					happened: func() bool { return !l.holding("1") },
					once:     true,
				}
			}},
		)
		if kind.cfg.Dialect != "" {
			continue
		}
		receive := func(ctx context.Context, q consumer) (recipes.Delivery, error) {
			d, err := q.Receive(ctx)
			if err == nil && string(d.Element().Data) != "1" {
				err = fmt.Errorf("received: %q", d.Element().Data)
			}
			return d, err
		}
		all = append(all,
			deed{"take behind a claim from " + kind.name, func(l *late, ctx context.Context) doing {
				mine, theirs := at(l, l.victim), at(l, l.other)
				must[[]recipes.ElementID](l.T)(theirs.put(ctx, []byte("0"), []byte("1"), []byte("2")))
				if err := take(ctx, mine, "0"); err != nil { // the session has listed the others
					l.Fatal(err)
				}
				d := must[recipes.Delivery](l.T)(receive(ctx, theirs))
				return doing{
					act:      func(acting context.Context) error { return take(acting, mine, "2") },
					happened: func() bool { return !l.holding("2") },
					once:     true,
					after:    func() error { return d.Ack(ctx) },
				}
			}},
			deed{"receive from " + kind.name, func(l *late, ctx context.Context) doing {
				must[[]recipes.ElementID](l.T)(at(l, l.other).put(ctx, []byte("1")))
				var d recipes.Delivery
				return doing{
					act:   func(acting context.Context) (err error) { d, err = receive(acting, at(l, l.victim)); return err },
					end:   func() error { return errors.Join(d.Write(ctx), d.Return(ctx)) },
					after: func() error { return take(ctx, at(l, l.other), "1") },
				}
			}},
			deed{"acknowledge what was received from " + kind.name, func(l *late, ctx context.Context) doing {
				must[[]recipes.ElementID](l.T)(at(l, l.other).put(ctx, []byte("1")))
				d := must[recipes.Delivery](l.T)(receive(ctx, at(l, l.victim)))
				return doing{
					act: func(acting context.Context) error {
						err := d.Ack(acting)
						if err == nil && l.holding("1") {
							err = errors.New("it is acknowledged, and there")
						}
						return err
					},
					stays: true,
					after: func() error {
						theirs, givenBack := at(l, l.other), l.holding("1")
						must[[]recipes.ElementID](l.T)(theirs.put(ctx, []byte("2")))
						if givenBack {
							if err := take(ctx, theirs, "1"); err != nil {
								return err
							}
						}
						return take(ctx, theirs, "2")
					},
				}
			}},
			deed{"return what was received from " + kind.name, func(l *late, ctx context.Context) doing {
				must[[]recipes.ElementID](l.T)(at(l, l.other).put(ctx, []byte("1")))
				d := must[recipes.Delivery](l.T)(receive(ctx, at(l, l.victim)))
				return doing{act: d.Return, after: func() error { return take(ctx, at(l, l.other), "1") }}
			}},
		)
	}
	return append(all,
		deed{"wait for room in a queue", func(l *late, ctx context.Context) doing {
			cfg := recipes.QueueConfig{Capacity: 1}
			mine, theirs := queueOf(l.T, l.victim, latePath, cfg), queueOf(l.T, l.other, latePath, cfg)
			must[recipes.ElementID](l.T)(theirs.Put(ctx, []byte("1")))
			return doing{
				act: func(acting context.Context) error {
					return whileWaiting(func() error { _, err := mine.Put(acting, []byte("2")); return err }, func() error {
						if !l.holding("1") {
							return nil
						}
						_, err := theirs.Take(ctx)
						return err
					})
				},
				happened: func() bool { return l.holding("2") },
				once:     true,
			}
		}},
		deed{"receive, after a dead letter", func(l *late, ctx context.Context) doing {
			cfg := recipes.QueueConfig{MaxDeliveries: 2}
			theirs := queueOf(l.T, l.other, latePath, cfg)
			must[recipes.ElementID](l.T)(theirs.Put(ctx, []byte("1")))
			unlimited := queueOf(l.T, l.other, latePath, recipes.QueueConfig{})
			for range 2 {
				if err := must[recipes.Delivery](l.T)(unlimited.Receive(ctx)).Return(ctx); err != nil {
					l.Fatal(err)
				}
			}
			must[recipes.ElementID](l.T)(theirs.Put(ctx, []byte("2")))
			var d recipes.Delivery
			return doing{
				act: func(acting context.Context) (err error) {
					d, err = queueOf(l.T, l.victim, latePath, cfg).Receive(acting)
					if err == nil && string(d.Element().Data) != "2" {
						err = fmt.Errorf("received: %q", d.Element().Data)
					}
					return err
				},
				end: func() error { return d.Ack(ctx) },
				after: func() error {
					dead, err := theirs.DeadLetters(ctx)
					if err == nil && (len(dead) != 1 || l.holding("2")) {
						err = fmt.Errorf("dead letters: %v", dead)
					}
					return err
				},
			}
		}},
		deed{"the last return", func(l *late, ctx context.Context) doing {
			q := l.queue(l.victim)
			must[recipes.ElementID](l.T)(q.Put(ctx, []byte("1")))
			d := must[recipes.Delivery](l.T)(q.Receive(ctx))
			return doing{
				act:   d.Return,
				stays: true, // then the next consumer buries it
				after: func() error {
					theirs := l.queue(l.other)
					must[recipes.ElementID](l.T)(theirs.Put(ctx, []byte("2")))
					d, err := theirs.Receive(ctx)
					if err != nil {
						return err
					}
					dead, err := theirs.DeadLetters(ctx)
					if string(d.Element().Data) != "2" || len(dead) != 1 {
						return fmt.Errorf("received: %q; dead letters: %v; %w", d.Element().Data, dead, err)
					}
					return err
				},
			}
		}},
	)
}

// disturbedKeys are about values that are compared before they are changed.
func disturbedKeys() []deed {
	at := func(l *late, s recipes.Session) recipes.Configuration { return configAt(l.T, s, latePath) }
	return []deed{
		{"set a key that was read", func(l *late, ctx context.Context) doing {
			r := must[recipes.Revision](l.T)(at(l, l.other).Set(ctx, "a", []byte("1"), recipes.NoRevision))
			return doing{
				act: func(acting context.Context) error {
					_, err := at(l, l.victim).Set(acting, "a", []byte("2"), r)
					return err
				},
				happened: func() bool { return l.holds(latePath+"/a", "2") },
				refused:  recipes.ErrBadVersion,
			}
		}},
		{"set a key whatever it is", func(l *late, ctx context.Context) doing {
			return doing{
				act: func(acting context.Context) error {
					_, err := at(l, l.victim).Set(acting, "a/b", []byte("2"), recipes.AnyRevision)
					return err
				},
				happened: func() bool { return l.holds(latePath+"/a/b", "2") },
			}
		}},
		{"make a key", func(l *late, ctx context.Context) doing {
			return doing{
				act: func(acting context.Context) error {
					_, err := at(l, l.victim).Set(acting, "a/b", []byte("2"), recipes.NoRevision)
					return err
				},
				happened: func() bool { return l.holds(latePath+"/a/b", "2") },
				refused:  recipes.ErrNodeExists,
			}
		}},
		{"delete a key that was read", func(l *late, ctx context.Context) doing {
			r := must[recipes.Revision](l.T)(at(l, l.other).Set(ctx, "a", []byte("1"), recipes.NoRevision))
			return doing{
				act:      func(acting context.Context) error { return at(l, l.victim).Delete(acting, "a", r) },
				happened: func() bool { return !l.present(latePath + "/a") },
				refused:  recipes.ErrNoNode,
			}
		}},
		{"add twice to a counter", func(l *late, ctx context.Context) doing {
			mine := counterAt(l.T, l.victim, latePath)
			must[int64](l.T)(mine.Add(ctx, 1))
			return doing{
				act:      func(acting context.Context) error { _, err := mine.Add(acting, 2); return err },
				happened: func() bool { return l.holds(latePath, "3") },
				once:     true,
				after: func() error {
					n, err := counterAt(l.T, l.other, latePath).Add(ctx, 4)
					if err == nil && n != 7 {
						err = fmt.Errorf("it is %d", n)
					}
					return err
				},
			}
		}},
		{"open a latch for one who waits", func(l *late, ctx context.Context) doing {
			mine := latchAt(l.T, l.victim, latePath, 1)
			waited := make(chan error, 1)
			go func() { waited <- latchAt(l.T, l.other, latePath, 1).Wait(ctx) }()
			return doing{
				act:      func(acting context.Context) error { _, err := mine.CountDown(acting); return err },
				happened: func() bool { return l.present(latePath + "/open") },
				after:    func() error { return <-waited },
			}
		}},
	}
}
