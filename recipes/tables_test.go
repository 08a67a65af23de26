package recipes_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// trial is one use of a recipe at its own path.
type trial struct {
	*testing.T
	ctx     context.Context
	s       recipes.Client
	path    string
	must    func(error)
	measure func(operation string, do func() error)
}

// newTrial opens a session with a server for a trial of each recipe.
func newTrial(t *testing.T, cfg zkserver.Config, chroot string) (*zkserver.Server, trial) {
	t.Helper()
	server := must.Get(zkserver.Listen(cfg))(t)
	t.Cleanup(func() { server.Close() })
	session := must.Get(zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: []string{server.Addr()}, Chroot: chroot}))(t)
	t.Cleanup(func() { _ = session.Close(context.WithoutCancel(t.Context())) })
	return server, newTrialOf(t.Context(), t, session)
}

func newTrialOf(ctx context.Context, t *testing.T, s recipes.Client) trial {
	return trial{T: t, ctx: ctx, s: s, must: func(err error) {
		t.Helper()
		must.Do(t, err)
	}}
}

// of is the trial of one recipe.
func (t trial) of(recipe string) trial {
	t.path += "/" + strings.ReplaceAll(strings.ToLower(recipe), " ", "-")
	return t
}

// rowsInTheDocs returns the cells of the table in docs/recipes.md with this header.
func rowsInTheDocs(t *testing.T, header string) (rows [][]string) {
	t.Helper()
	page := must.Get(os.ReadFile("../docs/recipes.md"))(t)
	_, table, found := strings.Cut(string(page), header+"\n"+regexp.MustCompile(` [^|]* `).ReplaceAllString(header, "---")+"\n")
	if !found {
		t.Fatalf("docs/recipes.md has no table %s", header)
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != strings.Count(header, "|")-1 {
			break
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// TestTheZnodesInTheDocs: the table of docs/recipes.md has every znode that a recipe creates, in
// the row of the recipe and in the column of its kind.
func TestTheZnodesInTheDocs(t *testing.T) {
	type row struct{ ephemeral, persistent []string }
	table := map[string]row{}
	code := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) (names []string) {
		for _, m := range code.FindAllStringSubmatch(cell, -1) {
			names = append(names, m[1])
		}
		return names
	}
	for _, cells := range rowsInTheDocs(t, "| recipe | ephemeral | persistent |") {
		table[cells[0]] = row{names(cells[1]), names(cells[2])}
	}
	server, each := newTrial(t, zkserver.Config{}, "")
	for recipe, d := range documented {
		if d.use == nil {
			continue
		}
		if _, ok := table[recipe]; !ok {
			t.Errorf("the table has no row %q", recipe)
			continue
		}
		trial := each.of(recipe)
		d.use(trial)
		found := 0
		for _, node := range server.Tree() {
			name, below := strings.CutPrefix(node.Path, trial.path+"/")
			if !below || strings.Contains(name, "/") {
				continue
			}
			found++
			column, kind := table[recipe].persistent, "persistent"
			if node.Stat.EphemeralOwner == trial.s.ID() {
				column, kind = table[recipe].ephemeral, "ephemeral"
			}
			if !slices.Contains(column, shape(name)) {
				t.Errorf("%s creates the %s znode %s (%s); the table has %q", recipe, kind, name, shape(name), column)
			}
		}
		if found == 0 && recipe != "Barrier" {
			t.Errorf("%s created no znode below %s", recipe, trial.path)
		}
	}
	for recipe := range table {
		if documented[recipe].use == nil {
			t.Errorf("no test covers the row %q", recipe)
		}
	}
}

var shapes = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "<guid>"},
	{regexp.MustCompile(`^_c_[0-9a-f]+-deletions$`), "_c_<czxid>-deletions"},
	{regexp.MustCompile(`\b0\d{9}$`), "<seq>"},
	{regexp.MustCompile(`n_0\d{9}$`), "n_<seq>"},
	{regexp.MustCompile(`-\d\d-`), "-YY-"},
	{regexp.MustCompile(`-slot-\d+-`), "-slot-N-"},
	{regexp.MustCompile(`^(s|joined|done)_(one|two)$`), "${1}_<site>"},
	{regexp.MustCompile(`^ann$`), "<name>"},
}

// shape returns a name as the table writes it.
func shape(name string) string {
	for _, s := range shapes {
		name = s.what.ReplaceAllString(name, s.with)
	}
	return name
}

// TestTheCostsInTheDocs: the table of docs/recipes.md has the cost of each operation, as in
// "acquire 1w 1r". The server counts. Time is virtual: each second, a session with holds confirms
// them by requests.
func TestTheCostsInTheDocs(t *testing.T) { zktest.OnVirtualTime(t, costsInTheDocs) }

func costsInTheDocs(ctx context.Context, t *testing.T, server *zkserver.Server, s recipes.Client) {
	table := map[string]map[string]string{}
	// The other parts of a cell are prose, and other tests check them.
	simple := regexp.MustCompile(`^([a-z ]+?) (\d+[wre](?: \d+[wre])*)$`)
	for _, cells := range rowsInTheDocs(t, "| recipe | what it promises | what it costs | section of the source |") {
		table[cells[0]] = map[string]string{}
		for part := range strings.SplitSeq(cells[2], ";") {
			if m := simple.FindStringSubmatch(strings.TrimSpace(part)); m != nil {
				table[cells[0]][m[1]] = m[2]
			}
		}
	}
	each := newTrialOf(ctx, t, s)
	for recipe, operations := range table {
		measured := map[string]string{}
		if operate := documented[recipe].operate; operate != nil {
			trial := each.of(recipe)
			trial.measure = func(operation string, do func() error) {
				before := server.Counters()
				if err := do(); err != nil {
					t.Fatalf("%s: %s: %v", recipe, operation, err)
				}
				synctest.Wait()
				cost := server.Counters().Sub(before)
				measured[operation] = costText(cost.Writes, cost.Reads, cost.WatchEvents)
			}
			operate(trial)
			synctest.Wait() // for what it has started
		}
		for operation, want := range operations {
			if got := measured[operation]; got != want {
				t.Errorf("%s: %s costs %q; the table has %q", recipe, operation, got, want)
			}
		}
		for operation, got := range measured {
			if _, ok := operations[operation]; !ok && !strings.HasPrefix(operation, "(") {
				t.Errorf("%s: %s costs %q; the table does not have it", recipe, operation, got)
			}
			if _, want, ok := strings.Cut(operation, ") "); ok && got != want {
				t.Errorf("%s: %s costs %q", recipe, operation, got)
			}
		}
	}
	zktest.Idle(t, server) // whatever still waits or watches sends nothing
	for recipe, d := range documented {
		if _, ok := table[recipe]; !ok && d.operate != nil {
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

// TestRecipesOnAServerBefore35: ZooKeeper 3.4 supports neither create2 nor containers. Every
// recipe works there. Its parents are plain znodes, which are not deleted.
func TestRecipesOnAServerBefore35(t *testing.T) {
	for recipe, d := range documented {
		if d.use == nil {
			continue
		}
		t.Run(recipe, func(t *testing.T) {
			server, trial := newTrial(t, zkserver.Config{Like: zkserver.Release34}, "/app")
			trial.path = "/below"
			d.use(trial.of(recipe))
			if n := server.Counters().Requests[zkserver.OpCreate2]; n > 1 {
				t.Errorf("%d create2 requests were sent; the first one ended the connection", n)
			}
			must.Report(t, trial.s.Close(context.WithoutCancel(trial.ctx)))
			for range 3 { // each check deletes one level
				server.RunContainerCheck()
			}
			if !slices.ContainsFunc(server.Tree(), func(n zkserver.Node) bool { return n.Path == "/app/below" }) {
				t.Error("the parent was a container")
			}
		})
	}
}
