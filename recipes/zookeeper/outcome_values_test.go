package zookeeper_test

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func (l *late) configuration() recipes.Configuration { return configAt(l.T, l.victim, latePath) }

func (l *late) queue(s recipes.Session) recipes.Queue {
	return must[recipes.Queue](l.T)(s.Queue(latePath, recipes.QueueConfig{MaxDeliveries: 1}))
}

// begun is a transaction that the victim has begun.
func (l *late) begun(v recipes.Variant) recipes.Transaction {
	t := must[recipes.Transaction](l.T)(l.victim.Transaction(latePath, recipes.TransactionConfig{Variant: v}))
	if err := t.Begin(l.ctx(), nil, "1"); err != nil {
		l.Fatal(err)
	}
	return t
}

// dataOperations are those on what stays in ZooKeeper: numbers, values, elements,
// transactions.
func dataOperations() []operation {
	return []operation{
		{
			name: "add to a counter",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := counterAt(l.T, l.victim, latePath).Add(ctx, 1)
				return err
			}),
			happened: func(l *late) bool { return l.holds(latePath, "1") },
		},
		{
			name: "count down a latch",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := latchAt(l.T, l.victim, latePath, 2).CountDown(ctx)
				return err
			}),
			happened: func(l *late) bool { return l.holds(latePath+"/remaining", "1") },
		},
		{
			name: "open a latch",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := latchAt(l.T, l.victim, latePath, 1).CountDown(ctx)
				return err
			}),
			happened: func(l *late) bool { return l.present(latePath + "/open") },
		},
		{
			name: "set a key",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := l.configuration().Set(ctx, "a/b", []byte("x"), recipes.NoRevision)
				return err
			}),
			happened: func(l *late) bool { return l.present(latePath + "/a/b") },
		},
		{
			name: "set the configuration's own node",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := l.configuration().Set(ctx, "", []byte("x"), recipes.NoRevision)
				return err
			}),
			happened: func(l *late) bool { return l.holds(latePath, "x") },
		},
		{
			name: "delete a key",
			prepare: func(l *late) func(context.Context) error {
				must[recipes.Revision](l.T)(l.configuration().Set(l.ctx(), "a", nil, recipes.AnyRevision))
				return func(ctx context.Context) error { return l.configuration().Delete(ctx, "a", recipes.AnyRevision) }
			},
			happened: func(l *late) bool { return !l.present(latePath + "/a") },
		},
		{
			name: "put into a queue",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := l.queue(l.victim).Put(ctx, nil)
				return err
			}),
			happened: func(l *late) bool { return l.below(latePath+"/queue-") > 0 },
		},
		{
			name: "put into a bounded queue",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := must[recipes.Queue](l.T)(l.victim.Queue(latePath, recipes.QueueConfig{Capacity: 1})).Put(ctx, nil)
				return err
			}),
			happened: func(l *late) bool { return l.below(latePath+"/queue-") > 0 },
		},
		{
			name: "take from a queue",
			prepare: func(l *late) func(context.Context) error {
				must[recipes.ElementID](l.T)(l.queue(l.victim).Put(l.ctx(), nil))
				return func(ctx context.Context) error {
					_, err := l.queue(l.victim).Take(ctx)
					return err
				}
			},
			happened: func(l *late) bool { return l.below(latePath+"/queue-") == 0 },
		},
		{
			name: "receive, after a dead letter",
			prepare: func(l *late) func(context.Context) error {
				must[[]recipes.ElementID](l.T)(l.queue(l.victim).PutMany(l.ctx(), nil, nil))
				must[recipes.Delivery](l.T)(l.queue(l.other).Receive(l.ctx()))
				l.other.Close(l.ctx())
				return func(ctx context.Context) error {
					_, err := l.queue(l.victim).Receive(ctx)
					return err
				}
			},
		},
		{
			name: "begin a transaction",
			prepare: only(func(l *late, ctx context.Context) error {
				t := must[recipes.Transaction](l.T)(l.victim.Transaction(latePath, recipes.TransactionConfig{}))
				return t.Begin(ctx, nil, "1")
			}),
			happened: func(l *late) bool { return l.present(latePath) },
		},
		{
			name: "join a transaction",
			prepare: func(l *late) func(context.Context) error {
				t := l.begun(recipes.OwnNodes)
				return func(ctx context.Context) error {
					_, err := t.Join(ctx, "1")
					return err
				}
			},
			happened: func(l *late) bool { return l.present(latePath + "/joined_1") },
		},
		{
			name: "vote",
			prepare: func(l *late) func(context.Context) error {
				site := must[recipes.Site](l.T)(l.begun("").Join(l.ctx(), "1"))
				return func(ctx context.Context) error { return site.Vote(ctx, recipes.VoteCommit) }
			},
			happened: func(l *late) bool { return l.holds(latePath+"/s_1", "commit") },
		},
		{
			name: "abort a transaction",
			prepare: func(l *late) func(context.Context) error {
				t := l.begun("")
				return func(ctx context.Context) error {
					_, err := t.Abort(ctx, "")
					return err
				}
			},
			happened: func(l *late) bool { return l.present(latePath + "/decision") },
		},
		{
			name: "take a coordinator's place",
			prepare: func(l *late) func(context.Context) error {
				t := must[recipes.Transaction](l.T)(l.other.Transaction(latePath, recipes.TransactionConfig{}))
				if err := t.Begin(l.ctx(), nil, "1"); err != nil {
					l.Fatal(err)
				}
				l.other.Close(l.ctx())
				t = must[recipes.Transaction](l.T)(l.victim.Transaction(latePath, recipes.TransactionConfig{}))
				site := must[recipes.Site](l.T)(t.Join(l.ctx(), "1"))
				if err := site.Vote(l.ctx(), recipes.VoteCommit); err != nil {
					l.Fatal(err)
				}
				return func(ctx context.Context) error {
					_, err := site.Wait(ctx)
					return err
				}
			},
			happened: func(l *late) bool { return l.present(latePath + "/decision") },
		},
		{
			name: "finish a transaction",
			prepare: func(l *late) func(context.Context) error {
				t := l.begun("")
				site := must[recipes.Site](l.T)(t.Join(l.ctx(), "1"))
				must[recipes.Decision](l.T)(t.Abort(l.ctx(), ""))
				return site.Done
			},
			happened: func(l *late) bool { return !l.present(latePath) },
		},
	}
}
