package queue

import (
	"errors"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// aQueue returns a queue at /q without a server.
func aQueue(t *testing.T, dialect recipes.Dialect) *queue {
	q := must.Get(Of(new(session.Session)).queue("/q", recipes.QueueConfig{Dialect: dialect}, false))(t)
	return q
}

func parsed(dialect recipes.Dialect, priority bool, names ...string) (found []string) {
	q := queue{cfg: recipes.QueueConfig{Dialect: dialect}, priority: priority}
	for _, e := range q.parse(names) {
		found = append(found, e.Name)
	}
	return found
}

// The names of elements, in the order in which consumers take them.
func TestTheOrderOfElements(t *testing.T) {
	names := []string{
		"queue-0000000002", "queue-0000000001", "queue-2147483647", "queue--2147483648",
		"queue-99--2147483648", "queue-99-2147483647", "queue-99-0000000003", "queue-00-0000000005", "queue-00-0000000004", "queue-9-0000000006", "queue-100-0000000007", "queue-0x-0000000008", "queue--5-0000000008", "queue-+5-0000000008", "queue-1:-0000000008", "queue-1/-0000000008", "00-queue-0000000008",
		"qn-0000000010", "qn-0000000009",
		"entry-100-0000000013", "entry-099-0000000014", "entry-999-0000000012", "entry-10-0000000011",
		"receipts", "claims", "dead", "bound", "x-queue-0000000001", "queue-1", "queue-", "",
	}
	for _, test := range []struct {
		dialect  recipes.Dialect
		priority bool
		want     []string
	}{
		{recipes.ZooKeeper, false, []string{"queue-0000000001", "queue-0000000002", "queue-2147483647", "queue--2147483648"}},
		{recipes.ZooKeeper, true, []string{"queue-00-0000000004", "queue-00-0000000005", "queue-99-0000000003", "queue-99-2147483647", "queue-99--2147483648"}},
		{recipes.Curator, false, []string{"qn-0000000009", "qn-0000000010"}},
		{recipes.Kazoo, false, []string{"entry-099-0000000014", "entry-100-0000000013", "entry-999-0000000012"}},
		{recipes.Kazoo, true, []string{"entry-099-0000000014", "entry-100-0000000013", "entry-999-0000000012"}},
	} {
		if got := parsed(test.dialect, test.priority, names...); !slices.Equal(got, test.want) {
			t.Errorf("%s, priorities %v: %q; want %q", test.dialect, test.priority, got, test.want)
		}
		for _, name := range test.want {
			if !IsElement("/some/queue/" + name) {
				t.Errorf("%s is no element", name)
			}
		}
	}
	for _, name := range []string{"receipts", "claims", "queue-1", "queue-0x-0000000008", "queue--5-0000000008", "queue-+5-0000000008", "entry--05-0000000011", "lock-0000000001", "entry-10-0000000011"} {
		if IsElement("/some/queue/" + name) {
			t.Errorf("%s is an element", name)
		}
	}
}

// A claim's name contains its element and attempt. Other names are refused.
func TestTheNamesOfClaims(t *testing.T) {
	q := aQueue(t, recipes.ZooKeeper)
	for _, attempt := range []int32{1, 2, 2147483647} {
		e, got, ok := q.parseClaim(q.claim("queue-0000000001", attempt))
		if !ok || got != attempt || e.Name != "queue-0000000001" {
			t.Errorf("attempt %d: %s, %d, %v", attempt, e.Name, got, ok)
		}
	}
	for _, bad := range []string{
		"/q/claims/queue-0000000001", "/q/claims/queue-0000000001-", "/q/claims/queue-0000000001-x", "/q/claims/queue-0000000001-01",
		"/q/claims/x-1", "/q/claims/x", "/q/claims/-1", "/q/queue-0000000001-1", "/other/claims/queue-0000000001-1", "/q/claims/queue-0000000001-2147483648",
	} {
		if e, attempt, ok := q.parseClaim(bad); ok {
			t.Errorf("%s is the claim of %s, attempt %d", bad, e.Name, attempt)
		}
	}
	claimed := claimedNames([]string{"queue-0000000001-1", "queue-0000000002", "-1", ""})
	for name, want := range map[string]bool{"queue-0000000001": true, "queue-0000000002": false, "queue": true, "": false} {
		if claimed[name] != want {
			t.Errorf("%q is claimed: %v", name, !want)
		}
	}
}

// In each dialect, these names are third-party elements.
func TestForeignElements(t *testing.T) {
	const ours, curators, kazoos = "queue-0000000001", "qn-0000000001", "entry-100-0000000001"
	for dialect, foreign := range map[recipes.Dialect][]string{
		recipes.ZooKeeper: {curators, kazoos},
		recipes.Curator:   {ours, kazoos, "receipts", "claims", "bound"},
		recipes.Kazoo:     {ours, curators, "receipts", "claims", "bound"},
	} {
		q := aQueue(t, dialect)
		for _, name := range []string{ours, curators, kazoos, "receipts", "claims", "bound", "dead", "queue-", "qn-x", "entry-1", "x"} {
			err := q.foreign([]string{"x", name})
			if errors.Is(err, recipes.ErrForeign) != slices.Contains(foreign, name) {
				t.Errorf("in the dialect %s, %s: %v", dialect, name, err)
			}
		}
	}
}
