package verify

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// limited is a client of a plugin that may lack recipes. It records what a part uses and
// the plugin lacks. The part is then skipped, whether or not it has failed.
type limited struct {
	recipes.Client
	*lacks
}

// lacks are the capabilities that a part uses and the plugin lacks.
type lacks struct {
	capabilities []string // of the plugin

	mu      sync.Mutex
	missing []string
}

func (l *lacks) uses(capabilities ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range capabilities {
		if !slices.Contains(l.capabilities, c) && !slices.Contains(l.missing, c) {
			l.missing = append(l.missing, c)
		}
	}
}

// tests records what a group of the contract uses: a group with the name of a recipe that makes
// grants uses this recipe. The methods of limited record the other uses.
func (l *lacks) tests(group string) {
	for _, w := range grants.All() {
		if w.Recipe() == group {
			l.uses(strings.ReplaceAll(group, " ", "-"))
		}
	}
}

func (l *lacks) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.missing, ", ")
}

// opener returns open with clients that are limited.
func (l *lacks) opener(open recipes.Opener) recipes.Opener {
	return func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		c, err := open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return limited{c, l}, nil
	}
}

func (l limited) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l.uses("lock")
	return l.Client.Lock(path, cfg)
}

func (l limited) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	l.uses("election")
	return l.Client.Election(path, cfg)
}

func (l limited) SharedLock(path string, cfg recipes.SharedLockConfig) (recipes.SharedLock, error) {
	l.uses("shared-lock")
	return l.Client.SharedLock(path, cfg)
}

func (l limited) Semaphore(path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	l.uses("semaphore")
	return l.Client.Semaphore(path, cfg)
}

func (l limited) Slots(path string, cfg recipes.SemaphoreConfig) (recipes.Slots, error) {
	l.uses("slots")
	return l.Client.Slots(path, cfg)
}

func (l limited) PriorityLock(path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	l.uses("priority-lock")
	return l.Client.PriorityLock(path, cfg)
}

func (l limited) Queue(path string, cfg recipes.QueueConfig) (recipes.Queue, error) {
	l.uses("queue")
	return l.Client.Queue(path, cfg)
}

func (l limited) PriorityQueue(path string, cfg recipes.QueueConfig) (recipes.PriorityQueue, error) {
	l.uses("priority-queue")
	return l.Client.PriorityQueue(path, cfg)
}

func (l limited) Group(path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	l.uses("group")
	return l.Client.Group(path, cfg)
}

func (l limited) Barrier(path string) (recipes.Barrier, error) {
	l.uses("barrier")
	return l.Client.Barrier(path)
}

func (l limited) DoubleBarrier(path string, cfg recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	l.uses("double-barrier")
	return l.Client.DoubleBarrier(path, cfg)
}

func (l limited) Transaction(path string, cfg recipes.TransactionConfig) (recipes.Transaction, error) {
	l.uses("transaction")
	return l.Client.Transaction(path, cfg)
}

func (l limited) Names(path string) (recipes.Names, error) {
	l.uses("names")
	return l.Client.Names(path)
}

func (l limited) Configuration(path string) (recipes.Configuration, error) {
	l.uses("configuration")
	return l.Client.Configuration(path)
}

func (l limited) Counter(path string, cfg recipes.CounterConfig) (recipes.Counter, error) {
	l.uses("counter")
	return l.Client.Counter(path, cfg)
}

func (l limited) Latch(path string, cfg recipes.LatchConfig) (recipes.Latch, error) {
	l.uses("latch")
	return l.Client.Latch(path, cfg)
}

// Shares are made of other recipes.
func (l limited) Shares(path string, n int, cfg recipes.SharesConfig) (recipes.Shares, error) {
	return recipes.NewShares(l, path, n, cfg)
}

func (l limited) Contenders(ctx context.Context, path string, kinds ...recipes.Kind) (recipes.Lines, error) {
	l.uses("contenders")
	return l.Client.Contenders(ctx, path, kinds...)
}

func (l limited) Children(ctx context.Context, path string) ([]string, error) {
	l.uses("contenders")
	return l.Client.Children(ctx, path)
}
