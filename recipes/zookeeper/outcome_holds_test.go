package zookeeper_test

import (
	"context"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func (l *late) lock() recipes.Lock {
	return must[recipes.Lock](l.T)(l.victim.Lock(latePath, recipes.LockConfig{}))
}

func (l *late) shared(s recipes.Session) recipes.SharedLock {
	return must[recipes.SharedLock](l.T)(s.SharedLock(latePath, recipes.SharedLockConfig{Revocable: true}))
}

func (l *late) names() recipes.Names {
	return must[recipes.Names](l.T)(l.victim.Names(latePath))
}

func (l *late) group() recipes.Group {
	return must[recipes.Group](l.T)(l.victim.Group(latePath, recipes.GroupConfig{Name: "me"}))
}

// standingOperations are those of who stands somewhere: in a line, at a barrier, in
// a group, under a name.
func standingOperations() []operation {
	return []operation{
		{
			name: "place a barrier",
			prepare: only(func(l *late, ctx context.Context) error {
				return barrierAt(l.T, l.victim, latePath).Set(ctx, nil)
			}),
			happened: func(l *late) bool { return l.present(latePath) },
		},
		{
			name: "remove a barrier",
			prepare: func(l *late) func(context.Context) error {
				b := barrierAt(l.T, l.victim, latePath)
				if err := b.Set(l.ctx(), nil); err != nil {
					l.Fatal(err)
				}
				return b.Remove
			},
			happened: func(l *late) bool { return !l.present(latePath) },
		},
		{
			name: "register a name",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := l.names().Register(ctx, "n", nil)
				return err
			}),
		},
		{
			name: "register a name for good",
			prepare: only(func(l *late, ctx context.Context) error {
				return l.names().RegisterPersistent(ctx, "n", nil)
			}),
			happened: func(l *late) bool { return l.present(latePath + "/n") },
		},
		{
			name: "unregister a name",
			prepare: func(l *late) func(context.Context) error {
				if err := l.names().RegisterPersistent(l.ctx(), "n", nil); err != nil {
					l.Fatal(err)
				}
				return func(ctx context.Context) error { return l.names().Unregister(ctx, "n", 0) }
			},
			happened: func(l *late) bool { return !l.present(latePath + "/n") },
		},
		{
			name: "join a group",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := l.group().Join(ctx, nil)
				return err
			}),
		},
		{
			name: "update a member",
			prepare: func(l *late) func(context.Context) error {
				m := must[recipes.Membership](l.T)(l.group().Join(l.ctx(), nil))
				return func(ctx context.Context) error { return m.Update(ctx, []byte("x")) }
			},
			happened: func(l *late) bool { return l.holds(latePath+"/me", "x") },
			lost:     []error{recipes.ErrNotHeld},
		},
		{
			name: "acquire a lock",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := l.lock().Acquire(ctx)
				return err
			}),
		},
		{
			name: "acquire a permit",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := must[recipes.Semaphore](l.T)(l.victim.Semaphore(latePath, recipes.SemaphoreConfig{Permits: 2})).Acquire(ctx)
				return err
			}),
		},
		{
			name: "acquire a lock by priority",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := must[recipes.PriorityLock](l.T)(l.victim.PriorityLock(latePath, recipes.PriorityLockConfig{})).AcquireWrite(ctx)
				return err
			}),
		},
		{
			name: "hand a lock off",
			prepare: func(l *late) func(context.Context) error {
				places := make(chan recipes.Place, 1)
				h := must[recipes.PriorityHold](l.T)(must[recipes.PriorityLock](l.T)(l.victim.PriorityLock(latePath, recipes.PriorityLockConfig{})).AcquireWrite(l.ctx()))
				waits := must[recipes.PriorityLock](l.T)(l.other.PriorityLock(latePath, recipes.PriorityLockConfig{Joined: func(p recipes.Place) { places <- p }}))
				go waits.AcquireWrite(l.ctx())
				successor := <-places
				return func(ctx context.Context) error { return h.HandOff(ctx, successor.Znode) }
			},
			happened: func(l *late) bool {
				synctest.Wait()          // until the successor holds, which it does in any case
				const withoutHandOff = 2 // the claims of the two
				return l.version(latePath) > withoutHandOff
			},
		},
		{
			name: "ask a holder to give way",
			prepare: func(l *late) func(context.Context) error {
				h := must[recipes.SharedHold](l.T)(l.shared(l.other).AcquireWrite(l.ctx()))
				return func(ctx context.Context) error { return l.shared(l.victim).Revoke(ctx, h.Znode()) }
			},
		},
		{
			name: "downgrade",
			prepare: func(l *late) func(context.Context) error {
				return must[recipes.SharedHold](l.T)(l.shared(l.victim).AcquireWrite(l.ctx())).Downgrade
			},
			lost: []error{recipes.ErrNotHeld},
		},
		{
			name: "campaign",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := must[recipes.Election](l.T)(l.victim.Election(latePath, recipes.ElectionConfig{})).Campaign(ctx, nil)
				return err
			}),
		},
		{
			name: "write under a hold",
			prepare: func(l *late) func(context.Context) error {
				h := must[recipes.Hold](l.T)(must[recipes.Lock](l.T)(l.victim.Lock(latePath, recipes.LockConfig{Strategy: recipes.Handoff})).Acquire(l.ctx()))
				return func(ctx context.Context) error { return h.Write(ctx, recipes.Create("/app/data", nil)) }
			},
			happened: func(l *late) bool { return l.present("/app/data") },
			lost:     []error{recipes.ErrNotHeld},
			once:     true,
		},
		{
			name: "acknowledge",
			prepare: func(l *late) func(context.Context) error {
				e := must[recipes.Election](l.T)(l.victim.Election(latePath, recipes.ElectionConfig{}))
				leads := must[recipes.Leadership](l.T)(e.Campaign(l.ctx(), nil))
				return func(ctx context.Context) error { return leads.Acknowledge(ctx, []byte("x")) }
			},
			happened: func(l *late) bool { return l.below(latePath+"/acks/") > 0 },
			lost:     []error{recipes.ErrNotHeld},
			once:     true,
		},
		{
			name: "write as a member",
			prepare: func(l *late) func(context.Context) error {
				m := must[recipes.Membership](l.T)(l.group().Join(l.ctx(), nil))
				return func(ctx context.Context) error { return m.Write(ctx, recipes.Create("/app/data", nil)) }
			},
			happened: func(l *late) bool { return l.present("/app/data") },
			lost:     []error{recipes.ErrNotHeld},
			once:     true,
		},
		{
			name: "enter a double barrier",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := doubleBarrierAt(l.T, l.victim, latePath, 1).Enter(ctx, nil)
				return err
			}),
		},
		{
			name: "leave a double barrier",
			prepare: func(l *late) func(context.Context) error {
				return must[recipes.Passage](l.T)(doubleBarrierAt(l.T, l.victim, latePath, 1).Enter(l.ctx(), nil)).Leave
			},
			lost: []error{recipes.ErrNotHeld},
		},
	}
}
