package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// shortestWatch is how long contenders -watch rests between two looks. It rests ten
// times as long as a look takes, so that a long line is not read all the time.
const shortestWatch = time.Second

// watch shows the line until a signal comes, or nobody reads.
func (v *contendersVerb) watch(ctx context.Context, t *tool, out *output) error {
	screen := newScreen(out)
	var known []recipes.Contender
	return follow(ctx, t, out, func(ctx context.Context, s recipes.Session) (<-chan looked, error) {
		return v.looks(ctx, s), nil
	}, func(now looked) error {
		if now.err != nil {
			return now.err
		}
		if screen != nil {
			return screen.draw(func(w io.Writer) { v.table(w, now.line) })
		}
		changes := lineChanges(known, now.line)
		known = now.line
		for _, c := range changes {
			if err := out.line(c, c.text()); err != nil {
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
func (v *contendersVerb) looks(ctx context.Context, s recipes.Session) <-chan looked {
	found := make(chan looked)
	go func() { // until then
		defer close(found)
		for {
			begun := time.Now()
			lines, err := s.Contenders(ctx, v.path, v.kinds()...)
			if ctx.Err() != nil {
				return
			}
			select {
			case found <- looked{lines.Contenders, err}:
			case <-ctx.Done():
				return
			}
			timer := time.NewTimer(max(shortestWatch, 10*time.Since(begun)))
			select {
			case <-timer.C:
			case <-s.Done():
				timer.Stop()
				return
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	}()
	return found
}

// lineChange is one change of a line.
type lineChange struct {
	Event string `json:"event"` // waits, holds, leads, left
	contenderJSON
	of recipes.Contender
}

func (c lineChange) text() string {
	return fmt.Sprintf("%s %s %s %s", c.Event, kindOf(c.of)+marksOf(c.of), sessionOf(c.of), onOneLine(c.of.Data))
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
func newScreen(out *output) *screen {
	if out.json || !terminal(out.stdout) {
		return nil
	}
	s := &screen{w: out.stdout, columns: 80, rows: 24}
	if columns, rows, err := term.GetSize(int(out.stdout.(*os.File).Fd())); err == nil && columns > 0 && rows > 0 {
		s.columns, s.rows = columns, rows
	}
	return s
}

// draw draws what f writes, over what was drawn before. What has no room is left out:
// the last line tells how much.
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
