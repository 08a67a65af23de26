package run

import (
	"context"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The wait queue is read after the first pause. Later pauses grow to the longest, because
// each listing costs one read per contender.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// ahead describes the contenders ahead of a waiter.
type ahead struct {
	waiting int // the contenders ahead, including holders
	holders []recipes.Contender
}

// aheadOf returns the contenders ahead of the session's contender. If the session has none
// in the line, all contenders are ahead.
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

func (a ahead) String() string {
	text := fmt.Sprintf("%d ahead", a.waiting)
	if names := a.names(); names != "" {
		text += ", held by " + names
	}
	return text
}

// names returns the data of the first holder, since when it is in the wait queue, and the
// number of other holders.
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

// waitLine shows the contenders ahead while the caller waits: at a terminal on one line that
// is redrawn, elsewhere with a line for each change.
type waitLine struct {
	t       *verb.Tool
	path    string
	columns int // of the terminal; 0 elsewhere
	drawn   bool
	said    string
}

// showWait shows the contenders ahead until stop is called. stop waits for the goroutine.
func (g *guard) showWait(ctx context.Context, s recipes.Client) (stop func()) {
	w := &waitLine{t: g.t, path: g.path}
	if !g.t.JSON {
		w.columns, _ = verb.Size(g.t.Stderr)
	}
	if g.lineKind == "" || w.columns == 0 && !g.verbose {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // until stop
		defer close(done)
		w.run(ctx, s, g.lineKind)
	}()
	return func() { cancel(); <-done }
}

func (w *waitLine) run(ctx context.Context, s recipes.Client, kind recipes.Kind) {
	defer w.clear()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		lines, err := s.Contenders(ctx, w.path, kind)
		if err == nil { // the wait itself reports a lasting error
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
	line := []rune(printable.Line("zkrecipes: " + text))
	fmt.Fprintf(w.t.Stderr, "\r\x1b[K%s", string(line[:min(len(line), w.columns-1)]))
	w.drawn = true
}

func (w *waitLine) clear() {
	if w.drawn {
		fmt.Fprint(w.t.Stderr, "\r\x1b[K")
	}
}

// heldBy returns the error of a contender with -try. It names the holder.
func (g *guard) heldBy(ctx context.Context, s recipes.Client) error {
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
	defer cancel()
	who := "another client"
	if lines, err := s.Contenders(ctx, g.path, g.lineKind); err == nil {
		if names := aheadOf(s.ID(), lines.Of(g.lineKind)).names(); names != "" {
			who += ": " + names
		}
	}
	return exit.With(exit.Timeout, "%s is held by %s; zkrecipes contenders %s lists the contenders", g.path, who, g.path)
}
