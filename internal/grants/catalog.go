package grants

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

var (
	own = []recipes.Dialect{recipes.ZooKeeper}
	all = recipes.Dialects()
)

// All returns the ways of all recipes.
func All() []Way {
	return []Way{
		complete(Way{
			Name: "lock", Kind: recipes.KindLock, Marker: "lock-", Dialects: all,
			Method: "Lock.Acquire", Tries: "Lock.TryAcquire", Gives: "Hold.Release",
		}, func(s recipes.Recipes, path string, o Options) (recipes.Lock, error) {
			return s.Lock(path, recipes.LockConfig{Strategy: o.Strategy, Dialect: o.Dialect, Data: o.Data, Joined: o.Joined})
		}, by(recipes.Lock.Acquire), by(recipes.Lock.TryAcquire), recipes.Hold.Release),

		complete(Way{
			Name: "semaphore", Kind: recipes.KindSemaphore, Marker: "lease-", Dialects: all,
			Method: "Semaphore.Acquire", Tries: "Semaphore.TryAcquire", Gives: "Hold.Release",
		}, func(s recipes.Recipes, path string, o Options) (recipes.Semaphore, error) {
			return s.Semaphore(path, o.semaphore())
		}, by(recipes.Semaphore.Acquire), by(recipes.Semaphore.TryAcquire), recipes.Hold.Release),

		complete(Way{
			Name: "slots", Kind: recipes.KindSemaphore, Marker: "lease-", Dialects: own,
			Method: "Slots.Acquire", Tries: "Slots.TryAcquire", Gives: "Hold.Release",
		}, func(s recipes.Recipes, path string, o Options) (recipes.Slots, error) {
			return s.Slots(path, o.semaphore())
		}, by(recipes.Slots.Acquire), by(recipes.Slots.TryAcquire), recipes.SlotHold.Release),

		complete(Way{
			Name: "shared lock for reading", Kind: recipes.KindSharedLock, Marker: "read-", Dialects: all,
			Method: "SharedLock.AcquireRead", Tries: "SharedLock.TryRead", Gives: "Hold.Release",
		}, sharedLock, by(recipes.SharedLock.AcquireRead), by(recipes.SharedLock.TryRead), recipes.SharedHold.Release),

		complete(Way{
			Name: "shared lock for writing", Kind: recipes.KindSharedLock, Marker: "write-", Dialects: all,
			Method: "SharedLock.AcquireWrite", Tries: "SharedLock.TryWrite", Gives: "Hold.Release",
		}, sharedLock, by(recipes.SharedLock.AcquireWrite), by(recipes.SharedLock.TryWrite), recipes.SharedHold.Release),

		complete(Way{
			Name: "priority lock for reading", Kind: recipes.KindPriorityLock, Marker: "reading-00-", Dialects: own,
			Method: "PriorityLock.AcquireRead", Tries: "PriorityLock.TryRead", Gives: "Hold.Release",
		}, priorityLock, by(recipes.PriorityLock.AcquireRead), by(recipes.PriorityLock.TryRead), recipes.PriorityHold.Release),

		complete(Way{
			Name: "priority lock for writing", Kind: recipes.KindPriorityLock, Marker: "writing-00-", Dialects: own,
			Method: "PriorityLock.AcquireWrite", Tries: "PriorityLock.TryWrite", Gives: "Hold.Release",
		}, priorityLock, by(recipes.PriorityLock.AcquireWrite), by(recipes.PriorityLock.TryWrite), recipes.PriorityHold.Release),

		complete(Way{
			Name: "election", Kind: recipes.KindElection, Marker: "n_", Dialects: all,
			Method: "Election.Campaign", Gives: "Leadership.Resign",
		}, func(s recipes.Recipes, path string, o Options) (recipes.Election, error) {
			return s.Election(path, recipes.ElectionConfig{Strategy: o.Strategy, Dialect: o.Dialect, Joined: o.Joined})
		}, func(e recipes.Election, ctx context.Context, o Options) (recipes.Leadership, error) {
			return e.Campaign(ctx, o.Data)
		}, nil, recipes.Leadership.Resign),

		complete(Way{
			Name: "membership", Dialects: all, Marker: "member-",
			Method: "Group.Join", Gives: "Membership.Leave",
		}, func(s recipes.Recipes, path string, o Options) (recipes.Group, error) {
			return s.Group(path, recipes.GroupConfig{Dialect: o.Dialect, Name: o.Name})
		}, func(g recipes.Group, ctx context.Context, o Options) (recipes.Membership, error) {
			return g.Join(ctx, o.Data)
		}, nil, recipes.Membership.Leave),

		// Register does not wait, so it also serves as the try.
		complete(Way{
			Name: "name", Dialects: own,
			Method: "Names.Register", Tries: "Names.Register", Gives: "Registration.Unregister",
		}, func(s recipes.Recipes, path string, _ Options) (recipes.Names, error) {
			return s.Names(path)
		}, register, register, recipes.Registration.Unregister),

		// Receive waits for an element that another client has put.
		complete(Way{
			Name: "delivery", Dialects: []recipes.Dialect{recipes.ZooKeeper, recipes.Kazoo},
			Method: "Queue.Receive", Gives: "Delivery.Return",
		}, func(s recipes.Recipes, path string, o Options) (recipes.Queue, error) {
			return s.Queue(path, recipes.QueueConfig{Dialect: o.Dialect})
		}, by(recipes.Queue.Receive), nil, recipes.Delivery.Return),

		complete(Way{
			Name: "delivery by priority", Dialects: []recipes.Dialect{recipes.ZooKeeper, recipes.Kazoo},
			Method: "PriorityQueue.Receive", Gives: "Delivery.Return",
		}, func(s recipes.Recipes, path string, o Options) (recipes.PriorityQueue, error) {
			return s.PriorityQueue(path, recipes.QueueConfig{Dialect: o.Dialect})
		}, by(recipes.PriorityQueue.Receive), nil, recipes.Delivery.Return),

		complete(Way{
			Name: "passage", Dialects: all, Marker: "member-",
			Method: "DoubleBarrier.Enter", Gives: "Passage.Leave",
		}, func(s recipes.Recipes, path string, o Options) (recipes.DoubleBarrier, error) {
			return s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: max(o.Permits, 1), Dialect: o.Dialect})
		}, func(b recipes.DoubleBarrier, ctx context.Context, o Options) (recipes.Passage, error) {
			return b.Enter(ctx, o.Data)
		}, nil, recipes.Passage.Leave),
	}
}

func (o Options) semaphore() recipes.SemaphoreConfig {
	return recipes.SemaphoreConfig{Permits: max(o.Permits, 1), Strategy: o.Strategy, Dialect: o.Dialect, Data: o.Data, Joined: o.Joined}
}

func sharedLock(s recipes.Recipes, path string, o Options) (recipes.SharedLock, error) {
	return s.SharedLock(path, recipes.SharedLockConfig{
		Strategy: o.Strategy, Dialect: o.Dialect, Data: o.Data, Joined: o.Joined, Revocable: o.Revocable, Grace: o.Grace,
	})
}

func priorityLock(s recipes.Recipes, path string, o Options) (recipes.PriorityLock, error) {
	return s.PriorityLock(path, recipes.PriorityLockConfig{
		Priority: o.Priority, Ask: o.Ask, Strategy: o.Strategy, Data: o.Data, Joined: o.Joined, Revocable: o.Revocable, Grace: o.Grace,
	})
}

func register(n recipes.Names, ctx context.Context, o Options) (recipes.Registration, error) {
	return n.Register(ctx, o.Name, o.Data)
}
