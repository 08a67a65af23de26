package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// persistent returns the znodes that have a contender's name, and no session: no program
// stands in line with them, and no session's end deletes them. All behind one wait.
func persistent(line []recipes.Contender) []recipes.Contender {
	return slices.DeleteFunc(slices.Clone(line), func(c recipes.Contender) bool { return c.SessionID != 0 })
}

// removal is how to delete a persistent znode.
func removal(c recipes.Contender) string {
	return fmt.Sprintf("if no program needs it, delete it with ZooKeeper's zkCli.sh: delete %s (below the chroot, where there is one)", c.Znode)
}

func blocking(w io.Writer, line []recipes.Contender) {
	for _, c := range persistent(line) {
		fmt.Fprintf(w, "%s is persistent: it has a contender's name and no session, and blocks all behind it; %s\n", c.Znode, removal(c))
	}
}
