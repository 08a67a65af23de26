package run

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Who is ahead is shown after the first pause, and looked up again after pauses that
// grow to the longest: to look costs one read for each contender.
const (
	firstLook   = time.Second
	longestLook = 30 * time.Second
)

// ahead is what a contender that waits knows of the line.
type ahead struct {
	waiting int // the contenders ahead, holders included
	holders []recipes.Contender
}

// aheadOf returns who is ahead of a session's contender. If it has none in the line,
// all are.
func aheadOf(session int64, line []recipes.Contender) (a ahead) {
	for _, c := range line {
		if c.SessionID == session {
			break
		}
		a.waiting++
		if c.Holds {
			a.holders = append(a.holders, c)
		}
	}
	return a
}

// String names the holder, since when it is in the wait queue, and how many are ahead.
func (a ahead) String() string {
	text := fmt.Sprintf("%d ahead", a.waiting)
	if names := a.names(); names != "" {
		text += ", held by " + names
	}
	return text
}

// names describes the first holder, and counts the others.
func (a ahead) names() string {
	if len(a.holders) == 0 {
		return ""
	}
	first := a.holders[0]
	text := fmt.Sprintf("%s, in line since %s", verb.Printable(first.Data), first.Since.UTC().Format(time.RFC3339))
	if others := len(a.holders) - 1; others > 0 {
		text += fmt.Sprintf(", and %d more", others)
	}
	return text
}

// waitLine tells those who wait in line who is ahead: at a terminal in one line that is
// drawn again, elsewhere in a line for each change.
type waitLine struct {
	t       *verb.Tool
	path    string
	columns int // of the terminal; 0 elsewhere
	drawn   bool
	said    string
}

// showWait shows who is ahead until stop is called, which waits for it.
func (g *guard) showWait(ctx context.Context, s recipes.Client, t *verb.Tool) (stop func()) {
	w := &waitLine{t: t, path: g.path, columns: columns(t)}
	if g.kindOfLine == "" || w.columns == 0 && !g.verbose {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // until stop
		defer close(done)
		w.run(ctx, s, g.kindOfLine)
	}()
	return func() { cancel(); <-done }
}

// columns is the width of the terminal that gets what zkrecipes says, or 0.
func columns(t *verb.Tool) int {
	f, ok := t.Stderr.(*os.File)
	if !ok || t.JSON {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	switch {
	case err != nil:
		return 0
	case width == 0: // of a terminal that was never told
		return 80
	}
	return width
}

func (w *waitLine) run(ctx context.Context, s recipes.Client, kind recipes.Kind) {
	defer w.clear()
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		lines, err := s.Contenders(ctx, w.path, kind)
		if err == nil { // otherwise the wait itself meets it too
			w.show(aheadOf(s.ID(), lines.Of(kind)))
		}
	}
}

func (w *waitLine) show(a ahead) {
	text := fmt.Sprintf("waiting for %s: %v", w.path, a)
	if text == w.said {
		return
	}
	w.said = text
	if w.columns == 0 {
		names := []string{}
		for _, h := range a.holders {
			names = append(names, verb.Printable(h.Data))
		}
		w.t.Event(verb.Event{Event: "waiting", Path: w.path, Ahead: &a.waiting, Holders: names}, text)
		return
	}
	line := []rune("zkrecipes: " + text)
	fmt.Fprintf(w.t.Stderr, "\r\x1b[K%s", string(line[:min(len(line), w.columns-1)]))
	w.drawn = true
}

// clear leaves the terminal to others.
func (w *waitLine) clear() {
	if w.drawn {
		fmt.Fprint(w.t.Stderr, "\r\x1b[K")
	}
}

// heldBy adds to an error of a contender that does not wait who holds.
func (g *guard) heldBy(ctx context.Context, s recipes.Client) error {
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
	defer cancel()
	who := "another client"
	if lines, err := s.Contenders(ctx, g.path, g.kindOfLine); err == nil {
		if names := aheadOf(s.ID(), lines.Of(g.kindOfLine)).names(); names != "" {
			who += ": " + names
		}
	}
	return exit.With(exit.Timeout, "%s is held by %s; zkrecipes contenders %s lists the contenders", g.path, who, g.path)
}
