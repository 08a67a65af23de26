// Package look contains the verbs that show the holders and waiters of a path, ask holders to
// release it, check the installation, and write a configuration file.
package look

import (
	"fmt"
	"io"
	gopath "path"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/look/top"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Verbs are the verbs of this package.
var Verbs = []verb.Verb{auditing, contenders, doctor, initialize, revoke, semaphore, top.Verb, upgradePlugin}

// contenderJSON is a contender in JSON.
type contenderJSON struct {
	State      string    `json:"state"`
	Kind       string    `json:"kind"`
	Dialect    string    `json:"dialect,omitempty"` // the library whose name the znode has; older plugins omit it
	Since      time.Time `json:"since"`
	SessionID  string    `json:"session_id"`      // in hexadecimal, as in ZooKeeper's tools
	Token      int64     `json:"token,omitempty"` // a waiter of a priority lock has none
	Znode      string    `json:"znode"`
	Slot       *int      `json:"slot,omitempty"` // only for a holder that has a number
	Priority   *int      `json:"priority,omitempty"`
	Successor  bool      `json:"successor,omitempty"`
	Revocable  bool      `json:"revocable,omitempty"`
	ForceAfter string    `json:"force_after,omitempty"`
	Asked      bool      `json:"asked,omitempty"`
	verb.Data
}

func toJSON(c recipes.Contender) contenderJSON {
	j := contenderJSON{
		State: stateOf(c), Kind: kindOf(c), Dialect: string(c.Dialect), Since: c.Since.UTC(), SessionID: sessionOf(c), Token: int64(c.Token), Znode: c.Znode, Slot: c.Slot,
		Successor: c.Successor, Revocable: c.Revocable, Asked: c.Revoked, Data: verb.InJSON(c.Data),
	}
	if c.Kind == recipes.KindPriorityLock {
		j.Priority = &c.Priority
	}
	if c.Grace > 0 {
		j.ForceAfter = c.Grace.String()
	}
	return j
}

// lineTable shows the contenders as a table.
func lineTable(line []recipes.Contender) func(io.Writer) {
	return verb.Table("STATE\tKIND\tSINCE\tSESSION\tTOKEN\tDATA", line, func(c recipes.Contender) []string {
		token := "-"
		if c.Token != 0 {
			token = fmt.Sprint(int64(c.Token))
		}
		return []string{stateOf(c), kindOf(c) + marksOf(c), c.Since.UTC().Format(time.RFC3339), sessionOf(c), token, verb.Printable(c.Data)}
	})
}

// kindOf returns the text for KIND: the recipe, or for a shared lock or a priority lock
// whether the contender reads or writes.
func kindOf(c recipes.Contender) string {
	switch c.Kind {
	case recipes.KindSharedLock:
		return string(c.Mode)
	case recipes.KindPriorityLock:
		return "priority-" + string(c.Mode)
	}
	return string(c.Kind)
}

func stateOf(c recipes.Contender) string {
	switch {
	case c.SessionID == 0:
		return "blocks"
	case !c.Holds:
		return "waits"
	case c.Kind == recipes.KindElection:
		return "leads"
	}
	return "holds"
}

// marksOf returns the text that follows KIND: priority, number, library and state.
func marksOf(c recipes.Contender) (marks string) {
	if c.Kind == recipes.KindPriorityLock {
		marks = fmt.Sprintf(":%d", c.Priority)
	}
	if c.Slot != nil {
		marks += fmt.Sprintf(",slot=%d", *c.Slot)
	}
	if verb.OtherLibrary(c.Dialect) {
		marks += "," + string(c.Dialect)
	}
	if c.Successor {
		marks += ",successor"
	}
	switch {
	case c.Revoked:
		marks += ",asked"
	case c.Revocable:
		marks += ",revocable"
	}
	return marks
}

func sessionOf(c recipes.Contender) string { return fmt.Sprintf("0x%x", uint64(c.SessionID)) }

// guid returns the part of a contender's znode name that does not change. In a priority lock
// -read and -write become -reading and -writing when the contender is granted.
func guid(znode string) string {
	name, _, _ := strings.Cut(gopath.Base(znode), "-read")
	name, _, _ = strings.Cut(name, "-writ")
	return name
}

// persistent returns the znodes that have a contender's name and no session. They do not
// belong to a running program, and no session's end deletes them. All contenders behind them wait.
func persistent(line []recipes.Contender) []recipes.Contender {
	return slices.DeleteFunc(slices.Clone(line), func(c recipes.Contender) bool { return c.SessionID != 0 })
}

// removal returns how to delete a persistent znode.
func removal(c recipes.Contender) string {
	return fmt.Sprintf("if no program needs it, delete it with ZooKeeper's zkCli.sh: delete %s (below the chroot, if there is one)", c.Znode)
}
