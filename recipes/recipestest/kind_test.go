package recipestest

import (
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/grants"
)

// Every wait queue of the catalog is a kind. Acquiring as a reader is not a kind, because readers
// do not exclude each other.
func TestEveryWaitQueueIsAKind(t *testing.T) {
	kinds := []kind{lockKind, electionKind, semaphoreKind, slotKind, writersKind, priorityKind}
	for _, w := range grants.All() {
		if w.Kind != "" && !strings.HasSuffix(w.Name, "reading") && !slices.ContainsFunc(kinds, func(k kind) bool { return k.way.Name == w.Name }) {
			t.Errorf("no kind is the %s", w.Name)
		}
	}
}
