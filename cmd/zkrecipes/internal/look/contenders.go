// Package look contains the verbs that show the holders and waiters of a path, ask holders to
// release it, check the installation, and write a configuration file.
package look

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	gopath "path"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/look/top"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Verbs are the verbs of this package.
var Verbs = []verb.Verb{auditing, contenders, doctor, initialize, revoke, semaphore, top.Verb, upgradePlugin}

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

func removal(c recipes.Contender) string {
	return fmt.Sprintf("if no program needs it, delete it with ZooKeeper's zkCli.sh: delete %s (below the chroot, if there is one)", c.Znode)
}

var contenders = verb.Verb{
	Name: "contenders", Usage: "[flags] PATH", New: verb.New[contendersVerb],
	Synopsis: "Show the holders and waiters of a lock",
	Help: `Shows the contenders for the lock at PATH: the holders, and then the waiters in order.
The answer may be outdated when you read it.

    zkrecipes contenders /backups/db1
    zkrecipes contenders -format=json -election /service/leader

KIND is the recipe: lock, semaphore, election, read or write (a shared lock),
priority-read or priority-write (with the priority). Each recipe has a separate wait
queue at PATH. These words may follow KIND:

    revocable       another client can ask the contender to release the lock
    asked           another client has asked for it
    successor       a holder has chosen the contender to be next
    slot=N          the number of the holder's permit (ZKRECIPES_SLOT)
    curator, kazoo  the name is of that library (-dialect of lock and elect)

Locks of Curator and go-zookeeper have the same names as ours, and kazoo's Election is a
lock. zkrecipes counts the ephemeral sequential znodes whose names belong to no recipe:
they may be contenders of another program, which ignores ours.

A znode with the name of a contender and no session "blocks": it is persistent, so all
contenders behind it wait until it is deleted. zkrecipes shows the command for that.

SINCE is when the contender joined, by the server's clock. For a holder of a priority
lock it is when the lock was granted. TOKEN is the fencing token.

Of more than 100 contenders, the table has the first 100 and the number of the others.
With -all, and in JSON, it has all of them.

With -watch a terminal shows the table, and redraws it after each change. Elsewhere each
change is a line: "waits", "holds", "leads", "blocks" or "left", then KIND, SESSION and
the data. zkrecipes reads the wait queue once a second, and a long one less often. It
waits while no server answers. It exits with 0 after a signal, and with 141 when the
reader of its output exits.

` + verb.OnceCodes,
}

type contendersVerb struct {
	verb.OnePath
	election bool
	follow   bool // -watch
	all      bool
}

// most is how many contenders the table shows without -all. People do not read a longer table.
const most = 100

func (v *contendersVerb) Flags(f *flag.FlagSet) {
	f.BoolVar(&v.election, "election", false, helptext.Common("show only the candidates of an election"))
	f.BoolVar(&v.all, "all", false, "show all contenders, and not only the first 100")
	f.BoolVar(&v.follow, "watch", false, helptext.Common("show each change, until a signal arrives"))
}

func (v *contendersVerb) Run(ctx context.Context, t *verb.Tool) error {
	if v.follow {
		return v.watch(ctx, t)
	}
	return verb.Ask(ctx, t, verb.Itself, v.lines, func(lines recipes.Lines) error {
		if len(lines.Contenders) == 0 {
			t.None("no contenders at %s", v.Path)
		}
		shown := verb.Object{"path", v.Path, "contenders", verb.List(lines.Contenders, toJSON)}
		if lines.Unknown > 0 {
			shown = append(shown, "unknown", lines.Unknown)
		}
		return t.Result(shown, func(w io.Writer) {
			table, more := lines.Contenders, 0
			if !v.all && len(table) > most {
				table, more = table[:most], len(table)-most
			}
			lineTable(table)(w)
			if more > 0 {
				verb.Row(w, "... and %s; -all shows all", english.Count(more, "more contender"))
			}
			for _, c := range persistent(lines.Contenders) {
				verb.Row(w, "%s is persistent: it has a contender's name and no session, and blocks all contenders behind it; %s", c.Znode, removal(c))
			}
			others(w, lines.Contenders)
			if lines.Unknown > 0 {
				verb.Row(w, "and %s of programs that zkrecipes does not know", english.Count(lines.Unknown, "ephemeral sequential znode"))
			}
		})
	})
}

// others writes, for each other library with contenders, the -dialect that joins its wait queue.
func others(w io.Writer, line []recipes.Contender) {
	for _, d := range recipes.Dialects() {
		n := len(slices.DeleteFunc(slices.Clone(line), func(c recipes.Contender) bool { return c.Dialect != d }))
		if n > 0 && verb.OtherLibrary(d) {
			verb.Row(w, "%d of %s: -dialect %s joins their wait queue", n, d, d)
		}
	}
}

func (v *contendersVerb) lines(s recipes.Client, ctx context.Context) (recipes.Lines, error) {
	if v.election {
		return s.Contenders(ctx, v.Path, recipes.KindElection)
	}
	return s.Contenders(ctx, v.Path)
}

// shortestWatch is the shortest pause of contenders -watch between two reads. The pause is
// ten times as long as a read takes, so that a long wait queue does not load the servers.
const shortestWatch = time.Second

func (v *contendersVerb) watch(ctx context.Context, t *verb.Tool) error {
	screen := newScreen(t)
	var known []recipes.Contender
	return verb.Poll(ctx, t, func(ctx context.Context, c recipes.Client) (time.Duration, error) {
		begun := time.Now()
		lines, err := v.lines(c, ctx)
		if err != nil {
			return 0, err
		}
		pause, now := max(shortestWatch, 10*time.Since(begun)), lines.Contenders
		if screen != nil {
			return pause, screen.draw(func(w io.Writer) {
				if len(now) == 0 {
					verb.Row(w, "no contenders at %s", v.Path)
				}
				lineTable(now)(w)
			})
		}
		changes := lineChanges(known, now)
		known = now
		for _, c := range changes {
			if err := t.Line(c, c.text()); err != nil {
				return 0, err
			}
		}
		return pause, nil
	})
}

type lineChange struct {
	Event string `json:"event"` // waits, holds, leads, blocks, left
	contenderJSON
	of recipes.Contender
}

func (c lineChange) text() string {
	return fmt.Sprintf("%s %s %s %s", c.Event, kindOf(c.of)+marksOf(c.of), sessionOf(c.of), verb.OnOneLine(c.of.Data))
}

// lineChanges returns the changes between two readings: contenders that have left, then new
// contenders and those whose state or marks have changed. It compares GUIDs, because the
// znode of a priority lock's contender gets another name when it is granted.
func lineChanges(before, now []recipes.Contender) (changes []lineChange) {
	gone, present := verb.Compare(before, now, func(c recipes.Contender) string { return guid(c.Znode) })
	for _, c := range gone {
		changes = append(changes, toChange("left", c))
	}
	for _, c := range present {
		change := toChange(stateOf(c.Is), c.Is)
		if c.Was == nil || toChange(stateOf(*c.Was), *c.Was).text() != change.text() {
			changes = append(changes, change)
		}
	}
	return changes
}

func toChange(event string, c recipes.Contender) lineChange { return lineChange{event, toJSON(c), c} }

// screen is a terminal on which a table is redrawn in place.
type screen struct {
	w             io.Writer
	columns, rows int
	drawn         int // lines
	last          string
}

func newScreen(t *verb.Tool) *screen {
	columns, rows := verb.Size(t.Stdout)
	if t.JSON || columns == 0 {
		return nil
	}
	return &screen{w: t.Stdout, columns: columns, rows: rows}
}

// draw replaces the screen with the output of f. If there are too many lines, the last one
// shows how many are omitted.
func (s *screen) draw(f func(io.Writer)) error {
	var b bytes.Buffer
	f(&b)
	lines := strings.Split(strings.TrimSuffix(printable.Text(b.String()), "\n"), "\n")
	if most := max(2, s.rows-1); len(lines) > most {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("... and %d more", len(lines)-most+1))
	}
	for i, l := range lines {
		if runes := []rune(l); len(runes) >= s.columns {
			lines[i] = string(runes[:s.columns-1])
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	if text == s.last {
		return nil
	}
	up := ""
	if s.drawn > 0 {
		up = fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn)
	}
	s.last, s.drawn = text, len(lines)
	_, err := io.WriteString(s.w, up+text)
	return err
}
