package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
)

// contractServer grants the timeouts that recipestest needs, and deletes empty containers soon.
var contractServer = zkserver.Config{TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute, ReapInterval: 250 * time.Millisecond}

// closing bounds the end of the plugin after the parts.
const closing = 30 * time.Second

func (o Options) contractParts(ctx context.Context) (parts []part, stop func(), err error) {
	p, err := host.Launch(ctx, host.Config{Path: o.Command[0], Args: o.Command[1:]})
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not a plugin, or does not start: %w", o.Command[0], err)
	}
	stop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		_ = p.Close(ctx) // parts leave sessions that they have cut off
	}
	info, err := p.Info(ctx)
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("%s does not describe itself: %w", o.Command[0], err)
	}
	for _, c := range recipestest.Parts() {
		parts = append(parts, part{"contract/" + c.Group + "/" + c.Name, func(ctx context.Context) {
			l := &lacks{capabilities: info.Capabilities}
			l.tests(c.Group)
			result := c.Check(ctx, recipestest.Env{Open: l.opener(p.Open), Servers: func(testing.TB) []string { return o.Servers }})
			switch missing := l.String(); {
			case missing != "":
				require(skipped("the plugin lacks the capability " + missing))
			case len(result.Failures) > 0:
				require(failures(result.Failures))
			case result.Skipped != "":
				require(skipped(result.Skipped))
			}
		}})
	}
	return parts, stop, nil
}

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

func (l *lacks) opener(open recipes.Opener) recipes.Opener {
	return func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		c, err := open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return limited{c, l}, nil
	}
}

// use records the capability, and opens the recipe.
func use[C, R any](l limited, capability string, open func(string, C) (R, error), path string, cfg C) (R, error) {
	l.uses(capability)
	return open(path, cfg)
}

func (l limited) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	return use(l, "lock", l.Client.Lock, path, cfg)
}

func (l limited) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	return use(l, "election", l.Client.Election, path, cfg)
}

func (l limited) SharedLock(path string, cfg recipes.SharedLockConfig) (recipes.SharedLock, error) {
	return use(l, "shared-lock", l.Client.SharedLock, path, cfg)
}

func (l limited) Semaphore(path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	return use(l, "semaphore", l.Client.Semaphore, path, cfg)
}

func (l limited) Slots(path string, cfg recipes.SemaphoreConfig) (recipes.Slots, error) {
	return use(l, "slots", l.Client.Slots, path, cfg)
}

func (l limited) PriorityLock(path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	return use(l, "priority-lock", l.Client.PriorityLock, path, cfg)
}

func (l limited) Queue(path string, cfg recipes.QueueConfig) (recipes.Queue, error) {
	return use(l, "queue", l.Client.Queue, path, cfg)
}

func (l limited) PriorityQueue(path string, cfg recipes.QueueConfig) (recipes.PriorityQueue, error) {
	return use(l, "priority-queue", l.Client.PriorityQueue, path, cfg)
}

func (l limited) Group(path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	return use(l, "group", l.Client.Group, path, cfg)
}

func (l limited) Barrier(path string) (recipes.Barrier, error) {
	l.uses("barrier")
	return l.Client.Barrier(path)
}

func (l limited) DoubleBarrier(path string, cfg recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	return use(l, "double-barrier", l.Client.DoubleBarrier, path, cfg)
}

func (l limited) Transaction(path string, cfg recipes.TransactionConfig) (recipes.Transaction, error) {
	return use(l, "transaction", l.Client.Transaction, path, cfg)
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
	return use(l, "counter", l.Client.Counter, path, cfg)
}

func (l limited) Latch(path string, cfg recipes.LatchConfig) (recipes.Latch, error) {
	return use(l, "latch", l.Client.Latch, path, cfg)
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
