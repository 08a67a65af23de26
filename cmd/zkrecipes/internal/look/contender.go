// Package look has the verbs that show who holds a lock and who waits, ask holders for it,
// and check and write what zkrecipes needs to work.
package look

import (
	"fmt"
	"io"
	gopath "path"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Verbs are those of this package.
var Verbs = []verb.Verb{
	contenders, doctor, initialize, revoke, semaphore,
}

// contenderJSON is a contender in JSON.
type contenderJSON struct {
	State      string    `json:"state"`
	Kind       string    `json:"kind"`
	Dialect    string    `json:"dialect,omitempty"` // whose name the znode has; none from an older plugin
	Since      time.Time `json:"since"`
	SessionID  string    `json:"session_id"`      // in hexadecimal, as ZooKeeper's own tools have it
	Token      int64     `json:"token,omitempty"` // none while one waits in a priority lock
	Znode      string    `json:"znode"`
	Priority   *int      `json:"priority,omitempty"`
	Successor  bool      `json:"successor,omitempty"`
	Revocable  bool      `json:"revocable,omitempty"`
	ForceAfter string    `json:"force_after,omitempty"`
	Asked      bool      `json:"asked,omitempty"`
	verb.Data
}

func toJSON(c recipes.Contender) contenderJSON {
	j := contenderJSON{
		State: stateOf(c), Kind: kindOf(c), Dialect: string(c.Dialect), Since: c.Since.UTC(), SessionID: sessionOf(c), Token: int64(c.Token), Znode: c.Znode,
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

// lineTable is a line for people.
func lineTable(line []recipes.Contender) func(io.Writer) {
	return verb.Table("STATE\tKIND\tSINCE\tSESSION\tTOKEN\tDATA", line, func(c recipes.Contender) string {
		token := "-"
		if c.Token != 0 {
			token = fmt.Sprint(int64(c.Token))
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", stateOf(c), kindOf(c)+marksOf(c), c.Since.UTC().Format(time.RFC3339), sessionOf(c), token, verb.Printable(c.Data))
	})
}

// kindOf is what contenders and revoke call a contender: its recipe, or what it does
// with a shared lock or priority lock.
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

// marksOf are what sets a contender apart from others of its kind, for people.
func marksOf(c recipes.Contender) (marks string) {
	if c.Kind == recipes.KindPriorityLock {
		marks = fmt.Sprintf(":%d", c.Priority)
	}
	if verb.Dialect(c.Dialect).Other() {
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

// guid is what the name of a contender's znode begins with, before its kind: read
// and write, or reading and writing of one that holds.
func guid(znode string) string {
	name, _, _ := strings.Cut(gopath.Base(znode), "-read")
	name, _, _ = strings.Cut(name, "-writ")
	return name
}

// persistent returns the znodes that have a contender's name and no session. No program
// holds or waits with them, and the end of no session deletes them. All contenders behind
// one wait.
func persistent(line []recipes.Contender) []recipes.Contender {
	return slices.DeleteFunc(slices.Clone(line), func(c recipes.Contender) bool { return c.SessionID != 0 })
}

// removal is how to delete a persistent znode.
func removal(c recipes.Contender) string {
	return fmt.Sprintf("if no program needs it, delete it with ZooKeeper's zkCli.sh: delete %s (below the chroot, where there is one)", c.Znode)
}
