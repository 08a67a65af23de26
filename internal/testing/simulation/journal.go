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

// The journal is where holders write under their grants. Its entries are znodes that
// nobody deletes, so the server's own order shows who held when.

func journalOf(p string) string { return "/journal" + p }

// entry is the path of the next entry under a grant.
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

// checkJournal checks that who held one after the other also wrote one after the
// other: nobody writes after the holder of a larger token that excludes it.
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
