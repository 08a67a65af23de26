package zookeeper

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Below are the recipes of a measuredSession. Each reports what its calls are granted.

type measuredLock struct {
	recipes.Lock
	asks
}

func (s measuredSession) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	r, err := s.zkSession.Lock(path, cfg)
	return measured(s, "lock", r, err, func(r recipes.Lock, a asks) recipes.Lock { return measuredLock{r, a} })
}

func (r measuredLock) Acquire(ctx context.Context) (recipes.Hold, error) {
	return ask(ctx, r.asks, r.Lock.Acquire)
}

func (r measuredLock) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return ask(ctx, r.asks, r.Lock.TryAcquire)
}

type measuredSemaphore struct {
	recipes.Semaphore
	asks
}

func (s measuredSession) Semaphore(path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	r, err := s.zkSession.Semaphore(path, cfg)
	return measured(s, "semaphore", r, err, func(r recipes.Semaphore, a asks) recipes.Semaphore { return measuredSemaphore{r, a} })
}

func (r measuredSemaphore) Acquire(ctx context.Context) (recipes.Hold, error) {
	return ask(ctx, r.asks, r.Semaphore.Acquire)
}

func (r measuredSemaphore) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return ask(ctx, r.asks, r.Semaphore.TryAcquire)
}

type measuredSlots struct {
	recipes.Slots
	asks
}

func (s measuredSession) Slots(path string, cfg recipes.SemaphoreConfig) (recipes.Slots, error) {
	r, err := s.zkSession.Slots(path, cfg)
	return measured(s, "slots", r, err, func(r recipes.Slots, a asks) recipes.Slots { return measuredSlots{r, a} })
}

func (r measuredSlots) Acquire(ctx context.Context) (recipes.SlotHold, error) {
	return ask(ctx, r.asks, r.Slots.Acquire)
}

func (r measuredSlots) TryAcquire(ctx context.Context) (recipes.SlotHold, error) {
	return ask(ctx, r.asks, r.Slots.TryAcquire)
}

func (s measuredSession) Shares(path string, n int, cfg recipes.SharesConfig) (recipes.Shares, error) {
	return recipes.NewShares(s, path, n, cfg) // of measured recipes
}

type measuredSharedLock struct {
	recipes.SharedLock
	asks
}

func (s measuredSession) SharedLock(path string, cfg recipes.SharedLockConfig) (recipes.SharedLock, error) {
	r, err := s.zkSession.SharedLock(path, cfg)
	return measured(s, "shared-lock", r, err, func(r recipes.SharedLock, a asks) recipes.SharedLock { return measuredSharedLock{r, a} })
}

func (r measuredSharedLock) AcquireRead(ctx context.Context) (recipes.SharedHold, error) {
	return ask(ctx, r.asks, r.SharedLock.AcquireRead)
}

func (r measuredSharedLock) AcquireWrite(ctx context.Context) (recipes.SharedHold, error) {
	return ask(ctx, r.asks, r.SharedLock.AcquireWrite)
}

func (r measuredSharedLock) TryRead(ctx context.Context) (recipes.SharedHold, error) {
	return ask(ctx, r.asks, r.SharedLock.TryRead)
}

func (r measuredSharedLock) TryWrite(ctx context.Context) (recipes.SharedHold, error) {
	return ask(ctx, r.asks, r.SharedLock.TryWrite)
}

type measuredPriorityLock struct {
	recipes.PriorityLock
	asks
}

func (s measuredSession) PriorityLock(path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	r, err := s.zkSession.PriorityLock(path, cfg)
	return measured(s, "priority-lock", r, err, func(r recipes.PriorityLock, a asks) recipes.PriorityLock { return measuredPriorityLock{r, a} })
}

func (r measuredPriorityLock) AcquireRead(ctx context.Context) (recipes.PriorityHold, error) {
	return ask(ctx, r.asks, r.PriorityLock.AcquireRead)
}

func (r measuredPriorityLock) AcquireWrite(ctx context.Context) (recipes.PriorityHold, error) {
	return ask(ctx, r.asks, r.PriorityLock.AcquireWrite)
}

func (r measuredPriorityLock) TryRead(ctx context.Context) (recipes.PriorityHold, error) {
	return ask(ctx, r.asks, r.PriorityLock.TryRead)
}

func (r measuredPriorityLock) TryWrite(ctx context.Context) (recipes.PriorityHold, error) {
	return ask(ctx, r.asks, r.PriorityLock.TryWrite)
}

type measuredElection struct {
	recipes.Election
	asks
}

func (s measuredSession) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	r, err := s.zkSession.Election(path, cfg)
	return measured(s, "election", r, err, func(r recipes.Election, a asks) recipes.Election { return measuredElection{r, a} })
}

func (r measuredElection) Campaign(ctx context.Context, data []byte) (recipes.Leadership, error) {
	return ask(ctx, r.asks, func(ctx context.Context) (recipes.Leadership, error) { return r.Election.Campaign(ctx, data) })
}

type measuredQueue struct {
	recipes.Queue
	asks
}

func (s measuredSession) Queue(path string, cfg recipes.QueueConfig) (recipes.Queue, error) {
	r, err := s.zkSession.Queue(path, cfg)
	return measured(s, "queue", r, err, func(r recipes.Queue, a asks) recipes.Queue { return measuredQueue{r, a} })
}

func (r measuredQueue) Receive(ctx context.Context) (recipes.Delivery, error) {
	return ask(ctx, r.asks, r.Queue.Receive)
}

type measuredPriorityQueue struct {
	recipes.PriorityQueue
	asks
}

func (s measuredSession) PriorityQueue(path string, cfg recipes.QueueConfig) (recipes.PriorityQueue, error) {
	r, err := s.zkSession.PriorityQueue(path, cfg)
	return measured(s, "queue", r, err, func(r recipes.PriorityQueue, a asks) recipes.PriorityQueue { return measuredPriorityQueue{r, a} })
}

func (r measuredPriorityQueue) Receive(ctx context.Context) (recipes.Delivery, error) {
	return ask(ctx, r.asks, r.PriorityQueue.Receive)
}

type measuredDoubleBarrier struct {
	recipes.DoubleBarrier
	asks
}

func (s measuredSession) DoubleBarrier(path string, cfg recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	r, err := s.zkSession.DoubleBarrier(path, cfg)
	return measured(s, "double-barrier", r, err, func(r recipes.DoubleBarrier, a asks) recipes.DoubleBarrier { return measuredDoubleBarrier{r, a} })
}

func (r measuredDoubleBarrier) Enter(ctx context.Context, data []byte) (recipes.Passage, error) {
	return ask(ctx, r.asks, func(ctx context.Context) (recipes.Passage, error) { return r.DoubleBarrier.Enter(ctx, data) })
}

type measuredGroup struct {
	recipes.Group
	asks
}

func (s measuredSession) Group(path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	r, err := s.zkSession.Group(path, cfg)
	return measured(s, "group", r, err, func(r recipes.Group, a asks) recipes.Group { return measuredGroup{r, a} })
}

func (r measuredGroup) Join(ctx context.Context, data []byte) (recipes.Membership, error) {
	return ask(ctx, r.asks, func(ctx context.Context) (recipes.Membership, error) { return r.Group.Join(ctx, data) })
}

type measuredNames struct {
	recipes.Names
	asks
}

func (s measuredSession) Names(path string) (recipes.Names, error) {
	r, err := s.zkSession.Names(path)
	return measured(s, "names", r, err, func(r recipes.Names, a asks) recipes.Names { return measuredNames{r, a} })
}

func (r measuredNames) Register(ctx context.Context, name string, data []byte) (recipes.Registration, error) {
	return ask(ctx, r.asks, func(ctx context.Context) (recipes.Registration, error) { return r.Names.Register(ctx, name, data) })
}
