package look

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var contenders = verb.Verb{
	Name: "contenders", Usage: "[flags] PATH", New: verb.New[contendersVerb],
	Synopsis: "Show who holds a lock, and who waits",
	Help: `Shows the contenders for the lock at PATH: who holds it, and who waits, in order. The
answer may be outdated when you read it.

    zkrecipes contenders /backups/db1
    zkrecipes contenders -format=json -election /service/leader

KIND tells the recipe: lock, semaphore, election, read and write (of a shared lock),
priority-read and priority-write (with the priority). Each recipe has a line of its
own at PATH. The word "revocable" follows if the contender can be asked to give the
lock back, "asked" if it was asked, and "successor" if a holder has chosen it to be next.
"curator" or "kazoo" follows if the name is of that library (-dialect of lock and elect).
Locks of Curator and go-zookeeper have the same names as ours, and kazoo's Election is
a lock. Ephemeral sequential znodes with names that no recipe has are counted: they may
be contenders of another program, which does not look for these.

A znode with the name of a contender and no session "blocks": it is persistent, so all
behind it wait until it is deleted. zkrecipes says how.

SINCE is when the contender joined, by the server's clock; in a priority lock it is
when the lock was granted. TOKEN is the fencing token.

With -watch a terminal shows the table, and draws it again when the line has moved.
Elsewhere each change is a line: "waits", "holds", "leads", "blocks" or "left", then KIND,
SESSION and the data. zkrecipes looks once a second, less often at a long line. It waits while
no server answers. A signal ends it with exit code 0; it ends too when nobody reads.

` + verb.OnceCodes,
}

type contendersVerb struct {
	verb.OnePath
	election bool
	follow   bool // -watch
}

func (v *contendersVerb) Flags(f *flag.FlagSet) {
	f.BoolVar(&v.election, "election", false, "only the candidates of an election")
	f.BoolVar(&v.follow, "watch", false, "show the line as it moves, until a signal comes")
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
		if lines.Unknown > 0 { // ephemeral sequential znodes of other programs
			shown = append(shown, "unknown", lines.Unknown)
		}
		return t.Result(shown, func(w io.Writer) {
			lineTable(lines.Contenders)(w)
			for _, c := range persistent(lines.Contenders) {
				fmt.Fprintf(w, "%s is persistent: it has a contender's name and no session, and blocks all behind it; %s\n", c.Znode, removal(c))
			}
			others(w, lines.Contenders)
			if lines.Unknown > 0 {
				fmt.Fprintf(w, "and %d ephemeral sequential znode(s) of programs that zkrecipes does not know\n", lines.Unknown)
			}
		})
	})
}

// others prints which dialect joins the wait queue of other libraries.
func others(w io.Writer, line []recipes.Contender) {
	for _, d := range recipes.Dialects() {
		n := len(slices.DeleteFunc(slices.Clone(line), func(c recipes.Contender) bool { return c.Dialect != d }))
		if n > 0 && verb.Dialect(d).Other() {
			fmt.Fprintf(w, "%d of %s: -dialect %s joins their wait queue\n", n, d, d)
		}
	}
}

// lines has the contenders that are shown.
func (v *contendersVerb) lines(s recipes.Client, ctx context.Context) (recipes.Lines, error) {
	if v.election {
		return s.Contenders(ctx, v.Path, recipes.KindElection)
	}
	return s.Contenders(ctx, v.Path)
}

// shortestWatch is the shortest pause of contenders -watch between two reads. The pause is
// ten times as long as a read takes, so that a long wait queue does not load the servers.
const shortestWatch = time.Second

// watch shows each change until a signal arrives or the reader has ended.
func (v *contendersVerb) watch(ctx context.Context, t *verb.Tool) error {
	screen := newScreen(t)
	var known []recipes.Contender
	return verb.Follow(ctx, t, verb.Itself, v.looks, func(now looked) error {
		if now.err != nil {
			return now.err
		}
		if screen != nil {
			return screen.draw(func(w io.Writer) {
				if len(now.line) == 0 {
					fmt.Fprintf(w, "no contenders at %s\n", v.Path)
				}
				lineTable(now.line)(w)
			})
		}
		changes := lineChanges(known, now.line)
		known = now.line
		for _, c := range changes {
			if err := t.Line(c, c.text()); err != nil {
				return err
			}
		}
		return nil
	})
}

// looked is what one look at a line has found.
type looked struct {
	line []recipes.Contender
	err  error
}

// looks looks at the line again and again, until ctx or the session ends.
func (v *contendersVerb) looks(s recipes.Client, ctx context.Context) (<-chan looked, error) {
	found := make(chan looked)
	go func() { // until then
		defer close(found)
		for {
			begun := time.Now()
			lines, err := v.lines(s, ctx)
			if ctx.Err() != nil {
				return
			}
			select {
			case found <- looked{lines.Contenders, err}:
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(max(shortestWatch, 10*time.Since(begun))):
			case <-s.Done():
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return found, nil
}

// lineChange is one change of a line.
type lineChange struct {
	Event string `json:"event"` // waits, holds, leads, left
	contenderJSON
	of recipes.Contender
}

func (c lineChange) text() string {
	return fmt.Sprintf("%s %s %s %s", c.Event, kindOf(c.of)+marksOf(c.of), sessionOf(c.of), verb.OnOneLine(c.of.Data))
}

// lineChanges returns how a line became another: contenders that have left, then new
// ones and those whose state or marks have changed. A contender that has waited in a priority lock holds under
// another name, with the same GUID.
func lineChanges(before, now []recipes.Contender) (changes []lineChange) {
	known, there := map[string]lineChange{}, map[string]bool{}
	for _, c := range now {
		there[guid(c.Znode)] = true
	}
	for _, c := range before {
		known[guid(c.Znode)] = toChange(stateOf(c), c)
		if !there[guid(c.Znode)] {
			changes = append(changes, toChange("left", c))
		}
	}
	for _, c := range now {
		change := toChange(stateOf(c), c)
		if was, ok := known[guid(c.Znode)]; !ok || was.text() != change.text() {
			changes = append(changes, change)
		}
	}
	return changes
}

func toChange(event string, c recipes.Contender) lineChange { return lineChange{event, toJSON(c), c} }

// screen is a terminal on which something is drawn in place.
type screen struct {
	w             io.Writer
	columns, rows int
	drawn         int // lines
	last          string
}

// newScreen returns the terminal that gets the results, or nil if they go elsewhere.
func newScreen(t *verb.Tool) *screen {
	if t.JSON || !verb.Terminal(t.Stdout) {
		return nil
	}
	s := &screen{w: t.Stdout, columns: 80, rows: 24}
	if columns, rows, err := term.GetSize(int(t.Stdout.(*os.File).Fd())); err == nil && columns > 0 && rows > 0 {
		s.columns, s.rows = columns, rows
	}
	return s
}

// draw replaces the screen with the output of f. If there are too many lines, the last line
// says how many were left out.
func (s *screen) draw(f func(io.Writer)) error {
	var b bytes.Buffer
	f(&b)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
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
