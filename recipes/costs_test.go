package recipes_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The table of docs/recipes.md says what each operation costs, as "acquire 1w 1r".
// The server counts.
func TestTheCostsInTheDocs(t *testing.T) {
	table := costsInTheDocs(t)
	server, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ctx := t.Context()
	session, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{server.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(context.WithoutCancel(ctx))
	for recipe, operations := range table {
		measured := map[string]string{}
		if use, ok := operate[recipe]; ok {
			path := "/" + strings.ReplaceAll(strings.ToLower(recipe), " ", "-")
			use(ctx, session, path, func(operation string, do func() error) {
				before := server.Counters()
				if err := do(); err != nil {
					t.Fatalf("%s: %s: %v", recipe, operation, err)
				}
				cost := server.Counters().Sub(before)
				measured[operation] = costText(cost.Writes, cost.Reads, cost.WatchEvents)
			})
		}
		for operation, want := range operations {
			if got := measured[operation]; got != want {
				t.Errorf("%s: %s costs %q; the table has %q", recipe, operation, got, want)
			}
		}
		for operation, got := range measured {
			if _, ok := operations[operation]; !ok && !strings.HasPrefix(operation, "(") {
				t.Errorf("%s: the table does not have that %s costs %q", recipe, operation, got)
			}
		}
	}
	for recipe := range operate {
		if _, ok := table[recipe]; !ok {
			t.Errorf("the table has no row %q", recipe)
		}
	}
}

func costText(writes, reads, events int64) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		unit string
	}{{writes, "w"}, {reads, "r"}, {events, "e"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", p.n, p.unit))
		}
	}
	return strings.Join(parts, " ")
}

// costsInTheDocs reads the parts of the third column that are a name and a cost.
// What else is there is prose, which other tests count.
func costsInTheDocs(t *testing.T) map[string]map[string]string {
	t.Helper()
	page, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| recipe | what it promises | what it costs | section of the source |\n|---|---|---|---|\n")
	if !found {
		t.Fatal("docs/recipes.md has no table of costs")
	}
	rows := map[string]map[string]string{}
	simple := regexp.MustCompile(`^([a-z ]+?) (\d+[wre](?: \d+[wre])*)$`)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 {
			break
		}
		row := map[string]string{}
		for part := range strings.SplitSeq(cells[3], ";") {
			if m := simple.FindStringSubmatch(strings.TrimSpace(part)); m != nil {
				row[m[1]] = m[2]
			}
		}
		rows[strings.TrimSpace(cells[1])] = row
	}
	return rows
}

// operate does each operation of the table once, after the recipe was used, so that
// parents and receipts exist. Names in parentheses are not in the table.
var operate = map[string]func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)){
	"Lock": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		lock, err := s.Lock(path, recipes.LockConfig{})
		var hold recipes.Hold
		acquire := func() error { hold, err = lock.Acquire(ctx); return err }
		release := func() error { return hold.Release(ctx) }
		write := func() error { return hold.Write(ctx) }
		measure("(first acquire)", acquire)
		measure("(first release)", release)
		measure("acquire", acquire)
		measure("release", release)
		measure("(acquire)", acquire)
		measure("(first write)", write) // makes what guards lie below
		measure("(release)", release)
		measure("acquire after a guarded write", acquire)
		measure("the first guarded write", write)
		measure("another one", write)
	},
	"Election": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		election, err := s.Election(path, recipes.ElectionConfig{})
		var leadership recipes.Leadership
		campaign := func() error { leadership, err = election.Campaign(ctx, nil); return err }
		acknowledge := func() error { return leadership.Acknowledge(ctx, nil) }
		resign := func() error { return leadership.Resign(ctx) }
		measure("(first campaign)", campaign)
		measure("(first resign)", resign)
		measure("campaign", campaign)
		measure("resign", resign)
		measure("(campaign)", campaign)
		measure("(first acknowledge)", acknowledge) // makes what acknowledgements lie below
		measure("(resign)", resign)
		measure("(campaign)", campaign)
		measure("acknowledge", acknowledge)
		measure("resign after that", resign)
	},
	"Shared lock": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		lock, err := s.SharedLock(path, recipes.SharedLockConfig{})
		var hold recipes.SharedHold
		read := func() error { hold, err = lock.AcquireRead(ctx); return err }
		release := func() error { return hold.Release(ctx) }
		measure("(first)", read)
		measure("(first release)", release)
		measure("acquire", read)
		measure("release", release)
	},
	"Revocable shared lock": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		lock, err := s.SharedLock(path, recipes.SharedLockConfig{Revocable: true})
		var hold recipes.SharedHold
		measure("(acquire)", func() error { hold, err = lock.AcquireWrite(ctx); return err })
		measure("ask", func() error { return lock.Revoke(ctx, hold.Znode()) })
	},
	"Priority lock": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		lock, err := s.PriorityLock(path, recipes.PriorityLockConfig{})
		var hold recipes.PriorityHold
		read := func() error { hold, err = lock.AcquireRead(ctx); return err }
		write := func() error { hold, err = lock.AcquireWrite(ctx); return err }
		release := func() error { return hold.Release(ctx) }
		measure("(first)", write)
		measure("(first release)", release)
		measure("acquire to write", write)
		measure("release", release)
		measure("acquire to read", read)
		measure("(release)", release)
	},
	"Semaphore": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		semaphore, err := s.Semaphore(path, recipes.SemaphoreConfig{Permits: 2})
		var hold recipes.Hold
		acquire := func() error { hold, err = semaphore.Acquire(ctx); return err }
		release := func() error { return hold.Release(ctx) }
		measure("(first)", acquire)
		measure("(first release)", release)
		measure("acquire", acquire)
		measure("release", release)
	},
	"Slots": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		slots, err := s.Slots(path, recipes.SemaphoreConfig{Permits: 2})
		var hold recipes.SlotHold
		acquire := func() error { hold, err = slots.Acquire(ctx); return err }
		release := func() error { return hold.Release(ctx) }
		measure("(first)", acquire)
		measure("(first release)", release)
		measure("acquire", acquire)
		measure("release", release)
	},
	"Barrier": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		barrier, _ := s.Barrier(path)
		set := func() error { return barrier.Set(ctx, nil) }
		remove := func() error { return barrier.Remove(ctx) }
		measure("(first)", set)
		measure("(first removal)", remove)
		measure("set", set)
		measure("remove", remove)
		measure("wait where it is not set", func() error { return barrier.Wait(ctx) })
	},
	"Queue": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		queue, _ := s.Queue(path, recipes.QueueConfig{})
		put := func() error { _, err := queue.PutMany(ctx, nil, nil, nil); return err }
		take := func() error { _, err := queue.Take(ctx); return err }
		measure("(first)", put)
		measure("(first take)", take)
		measure("put", put)
		measure("take", take)
	},
	"Priority queue": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		queue, _ := s.PriorityQueue(path, recipes.QueueConfig{})
		put := func() error { _, err := queue.PutMany(ctx, 1, nil, nil, nil); return err }
		take := func() error { _, err := queue.Take(ctx); return err }
		measure("(first)", put)
		measure("(first take)", take)
		measure("put", put)
		measure("take", take)
	},
	"Group": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		group, err := s.Group(path, recipes.GroupConfig{})
		var member recipes.Membership
		join := func() error { member, err = group.Join(ctx, nil); return err }
		leave := func() error { return member.Leave(ctx) }
		measure("(first)", join)
		measure("(first leave)", leave)
		measure("join", join)
		measure("update", func() error { return member.Update(ctx, nil) })
		measure("leave", leave)
	},
	"Names": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		names, err := s.Names(path)
		var registration recipes.Registration
		register := func() error { registration, err = names.Register(ctx, "ann", nil); return err }
		unregister := func() error { return registration.Unregister(ctx) }
		measure("(first)", register)
		measure("(first unregister)", unregister)
		measure("register", register)
		measure("look up", func() error { _, err := names.Lookup(ctx, "ann"); return err })
		measure("unregister", unregister)
	},
	"Configuration": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		configuration, _ := s.Configuration(path)
		set := func() error { _, err := configuration.Set(ctx, "ann", nil, recipes.AnyRevision); return err }
		measure("(first)", set)
		measure("set", set)
		measure("get", func() error { _, err := configuration.Get(ctx, "ann"); return err })
	},
	"Counter, latch": func(ctx context.Context, s recipes.Client, path string, measure func(string, func() error)) {
		counter, _ := s.Counter("/counter", recipes.CounterConfig{})
		add := func() error { _, err := counter.Add(ctx, 1); return err }
		measure("(first add)", add)
		measure("add", add)
		latch, _ := s.Latch("/latch", recipes.LatchConfig{Count: 3})
		countDown := func() error { _, err := latch.CountDown(ctx); return err }
		measure("(first count down)", countDown)
		measure("count down", countDown)
	},
}
