package recipes_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Every znode that a recipe makes is in the table of docs/recipes.md, in the row
// of the recipe and in the column of its kind.
func TestTheZnodesInTheDocs(t *testing.T) {
	table := znodesInTheDocs(t)
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
	for recipe, use := range uses {
		if _, ok := table[recipe]; !ok {
			t.Errorf("the table has no row %q", recipe)
			continue
		}
		path := "/" + strings.ReplaceAll(strings.ToLower(recipe), " ", "-")
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", recipe, err)
			}
		}
		use(ctx, must, session, path)
		found := 0
		for _, node := range server.Tree() {
			name, below := strings.CutPrefix(node.Path, path+"/")
			if !below || strings.Contains(name, "/") {
				continue
			}
			found++
			column, kind := table[recipe].persistent, "persistent"
			if node.Stat.EphemeralOwner == session.ID() {
				column, kind = table[recipe].ephemeral, "ephemeral"
			}
			if !slices.Contains(column, shape(name)) {
				t.Errorf("%s makes the %s znode %s (%s); the table has %q", recipe, kind, name, shape(name), column)
			}
		}
		if found == 0 && recipe != "Barrier" {
			t.Errorf("%s made no znode below %s", recipe, path)
		}
	}
	for recipe := range table {
		if _, ok := uses[recipe]; !ok {
			t.Errorf("no test knows the row %q", recipe)
		}
	}
}

type row struct{ ephemeral, persistent []string }

// znodesInTheDocs reads what stands as code in the cells of the table.
func znodesInTheDocs(t *testing.T) map[string]row {
	t.Helper()
	page, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| recipe | ephemeral | persistent |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/recipes.md has no table of znodes")
	}
	rows := map[string]row{}
	code := regexp.MustCompile("`[^`]+`")
	cell := func(text string) (names []string) {
		for _, name := range code.FindAllString(text, -1) {
			names = append(names, strings.Trim(name, "`"))
		}
		return names
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 {
			break
		}
		rows[strings.TrimSpace(cells[1])] = row{cell(cells[2]), cell(cells[3])}
	}
	return rows
}

var shapes = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "<guid>"},
	{regexp.MustCompile(`\b0\d{9}$`), "<seq>"},
	{regexp.MustCompile(`n_0\d{9}$`), "n_<seq>"},
	{regexp.MustCompile(`-\d\d-`), "-YY-"},
	{regexp.MustCompile(`-slot-\d+-`), "-slot-N-"},
	{regexp.MustCompile(`^(s|joined|done)_(one|two)$`), "${1}_<site>"},
	{regexp.MustCompile(`^ann$`), "<name>"},
}

// shape is a name as the table writes it.
func shape(name string) string {
	for _, s := range shapes {
		name = s.what.ReplaceAllString(name, s.with)
	}
	return name
}

// uses make each znode that a recipe can make on the way of one session.
var uses = map[string]func(ctx context.Context, must func(error), s recipes.Client, path string){
	"Lock": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		for _, strategy := range []recipes.Strategy{recipes.Handoff, recipes.Predecessor} {
			lock, err := s.Lock(path, recipes.LockConfig{Strategy: strategy})
			must(err)
			waits := make(chan struct{})
			if strategy == recipes.Predecessor { // waits for the first
				lock, err = s.Lock(path, recipes.LockConfig{Strategy: strategy, Joined: func(recipes.Place) { close(waits) }})
				must(err)
				go lock.Acquire(ctx)
				<-waits
				continue
			}
			hold, err := lock.Acquire(ctx)
			must(err)
			must(hold.Write(ctx))
		}
	},
	"Election": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		election, err := s.Election(path, recipes.ElectionConfig{})
		must(err)
		leadership, err := election.Campaign(ctx, nil)
		must(err)
		must(leadership.Acknowledge(ctx, nil))
	},
	"Shared lock": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		lock, err := s.SharedLock(path, recipes.SharedLockConfig{})
		must(err)
		hold, err := lock.AcquireWrite(ctx)
		must(err)
		must(hold.Downgrade(ctx))
		_, err = lock.AcquireRead(ctx)
		must(err)
	},
	"Priority lock": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		waits := make(chan struct{})
		lock, err := s.PriorityLock(path, recipes.PriorityLockConfig{})
		must(err)
		_, err = lock.AcquireRead(ctx)
		must(err)
		second, err := s.PriorityLock(path, recipes.PriorityLockConfig{Priority: 10, Joined: func(recipes.Place) { close(waits) }})
		must(err)
		go second.AcquireWrite(ctx)
		<-waits
	},
	"Semaphore": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		semaphore, err := s.Semaphore(path, recipes.SemaphoreConfig{Permits: 2})
		must(err)
		_, err = semaphore.Acquire(ctx)
		must(err)
	},
	"Slots": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		waits := make(chan struct{}, 2)
		slots, err := s.Slots(path, recipes.SemaphoreConfig{Permits: 1, Joined: func(recipes.Place) { waits <- struct{}{} }})
		must(err)
		_, err = slots.Acquire(ctx)
		must(err)
		<-waits
		go slots.Acquire(ctx)
		<-waits
	},
	"Barrier": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		barrier, err := s.Barrier(path)
		must(err)
		must(barrier.Set(ctx, nil))
	},
	"Double barrier": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		barrier, err := s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: 1})
		must(err)
		_, err = barrier.Enter(ctx, nil)
		must(err)
	},
	"Queue": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		queue, err := s.Queue(path, recipes.QueueConfig{Capacity: 9, MaxDeliveries: 1})
		must(err)
		_, err = queue.PutMany(ctx, nil, nil)
		must(err)
		delivery, err := queue.Receive(ctx)
		must(err)
		must(delivery.Return(ctx))
	},
	"Priority queue": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		queue, err := s.PriorityQueue(path, recipes.QueueConfig{Capacity: 9, MaxDeliveries: 1})
		must(err)
		_, err = queue.PutMany(ctx, 5, nil, nil)
		must(err)
		delivery, err := queue.Receive(ctx)
		must(err)
		must(delivery.Return(ctx))
	},
	"Two-phase commit": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		tx, err := s.Transaction(path, recipes.TransactionConfig{Variant: recipes.OwnNodes})
		must(err)
		must(tx.Begin(ctx, nil, "one", "two"))
		site, err := tx.Join(ctx, "one")
		must(err)
		_, err = tx.Abort(ctx, "enough")
		must(err)
		must(site.Done(ctx))
	},
	"Group": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		for _, name := range []string{"", "ann"} {
			group, err := s.Group(path, recipes.GroupConfig{Name: name})
			must(err)
			_, err = group.Join(ctx, nil)
			must(err)
		}
	},
	"Names": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		names, err := s.Names(path)
		must(err)
		must(names.RegisterPersistent(ctx, "ann", nil))
	},
	"Configuration": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		configuration, err := s.Configuration(path)
		must(err)
		_, err = configuration.Set(ctx, "ann", nil, recipes.AnyRevision)
		must(err)
	},
	"Counter": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		counter, err := s.Counter(path, recipes.CounterConfig{})
		must(err)
		_, err = counter.Add(ctx, 1)
		must(err)
	},
	"Latch": func(ctx context.Context, must func(error), s recipes.Client, path string) {
		latch, err := s.Latch(path, recipes.LatchConfig{Count: 1})
		must(err)
		_, err = latch.CountDown(ctx)
		must(err)
	},
}
