package simulation

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// Holders write to the journal under their grants. Its entries are znodes that are never deleted,
// so the order of the server's transactions shows who held when.

func journalOf(p string) string { return "/journal" + p }

// entry returns the path of the next journal entry of a grant.
func (g *grant) entry() string {
	g.entries++
	mode := "alone"
	if g.shared {
		mode = "shared"
	}
	if !g.journaled {
		return fmt.Sprintf("/journal/%016x-%d", int64(g.Token()), g.entries)
	}
	return fmt.Sprintf("%s/%016x-%d-%s", journalOf(g.path), int64(g.Token()), g.entries, mode)
}

// checkJournal checks that grants that exclude each other also wrote one after the other: none
// writes after a grant with a larger token that excludes it.
func (w *World) checkJournal(p string) {
	var entries []zkserver.Node
	for _, n := range w.server.Tree() {
		if path.Dir(n.Path) == journalOf(p) {
			entries = append(entries, n)
		}
	}
	slices.SortFunc(entries, func(a, b zkserver.Node) int { return cmp.Compare(a.Stat.Czxid, b.Stat.Czxid) })
	var any, alone int64 // the largest tokens that have written
	for _, n := range entries {
		hex, rest, _ := strings.Cut(path.Base(n.Path), "-")
		token, _ := strconv.ParseInt(hex, 16, 64)
		shared := strings.HasSuffix(rest, "shared")
		last := any
		if shared {
			last = alone
		}
		if token < last {
			w.fail("journal", "%s was written after the holder of token %#x had written", n.Path, last)
		}
		any = max(any, token)
		if !shared {
			alone = max(alone, token)
		}
	}
}
