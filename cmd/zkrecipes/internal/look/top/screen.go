package top

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/printable"
)

// screen is the whole screen of a terminal.
type screen struct {
	tcell.Screen
	quit func()
	done sync.WaitGroup
	stop chan struct{}

	mu     sync.Mutex
	last   *snapshot // nil: nothing was read yet
	status string    // the last line that was written to stderr
	top    int       // the number of lines above the first that is shown
}

func openScreen(quit func()) (*screen, error) {
	terminal, err := tcell.NewScreen()
	if err != nil {
		return nil, err
	}
	return startScreen(terminal, quit)
}

// startScreen takes over the terminal until close. quit runs when a key ends the view.
func startScreen(terminal tcell.Screen, quit func()) (*screen, error) {
	if err := terminal.Init(); err != nil {
		return nil, err
	}
	s := &screen{Screen: terminal, quit: quit, stop: make(chan struct{})}
	events := make(chan tcell.Event)
	s.done.Go(func() { terminal.ChannelEvents(events, s.stop) })
	s.done.Go(func() { s.loop(events) })
	return s, nil
}

func (s *screen) close() {
	close(s.stop)
	s.done.Wait()
	s.Fini()
}

// loop handles keys, and redraws every second, because times grow.
func (s *screen) loop(events <-chan tcell.Event) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	s.draw()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		case e, ok := <-events:
			if !ok {
				return
			}
			switch e := e.(type) {
			case *tcell.EventKey:
				s.press(e)
			case *tcell.EventResize:
				s.Sync()
			}
		}
		s.draw()
	}
}

func (s *screen) press(e *tcell.EventKey) {
	_, rows := s.Size()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch page := max(1, rows-6); e.Key() {
	case tcell.KeyCtrlC, tcell.KeyEscape:
		s.quit()
	case tcell.KeyRune:
		if e.Rune() == 'q' {
			s.quit()
		}
	case tcell.KeyUp:
		s.top--
	case tcell.KeyDown:
		s.top++
	case tcell.KeyPgUp:
		s.top -= page
	case tcell.KeyPgDn:
		s.top += page
	case tcell.KeyHome:
		s.top = 0
	case tcell.KeyEnd:
		s.top = 1 << 30 // draw limits it
	}
}

func (s *screen) show(n *snapshot) error {
	s.mu.Lock()
	s.last, s.status = n, ""
	s.mu.Unlock()
	s.draw()
	return nil
}

// Write shows what would otherwise be written to stderr, such as that no server answers.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	s.status = strings.TrimSpace(string(text))
	s.mu.Unlock()
	s.draw()
	return len(text), nil
}

// mostCycles limits the possible deadlocks on the screen.
const mostCycles = 4

var (
	plain  = tcell.StyleDefault
	alarm  = plain.Bold(true).Foreground(tcell.ColorRed)
	titles = plain.Reverse(true)
)

func (s *screen) draw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Clear()
	columns, rows := s.Size()
	row := 0
	put := func(text string, style tcell.Style) {
		if row < rows {
			s.PutStrStyled(0, row, printable.Line(text), style)
		}
		row++
	}
	now := time.Now()
	if s.last == nil {
		put("zkrecipes top: connecting, and reading the first znodes", plain)
		put(s.status, alarm)
		s.Show()
		return
	}
	n := s.last
	put("zkrecipes top "+n.root+"    q: quit, arrows: scroll", plain.Bold(true))
	if n.rounds == 0 {
		put(fmt.Sprintf("first round: %s in %s so far", english.Count(len(n.lines), "wait queue"), english.Count(n.searched, "znode")), plain)
	} else {
		for _, note := range n.notes(now) {
			put(note, plain)
		}
	}
	if s.status != "" {
		put(s.status, alarm)
	}
	for i, c := range n.cycles {
		if i == mostCycles {
			put(fmt.Sprintf("and %s: zkrecipes top -once %s lists all", english.Count(len(n.cycles)-i, "more possible deadlock"), n.root), alarm)
			break
		}
		put(c.String(), alarm)
	}
	lines := longestWaitFirst(n.lines)
	space := max(0, rows-row-1)
	s.top = max(0, min(s.top, len(lines)-space))
	visible := lines[s.top:min(len(lines), s.top+space)]
	cells := [][]string{strings.Split(header, "\t")}
	for _, l := range visible {
		cells = append(cells, l.cells(n.sessions, now))
	}
	for i, text := range aligned(cells) {
		style := plain
		switch {
		case i == 0:
			style = titles
			text += strings.Repeat(" ", max(0, columns-len([]rune(text))))
		case len(visible[i-1].ending(n.sessions)) > 0:
			style = alarm
		}
		put(text, style)
	}
	s.Show()
}

// mostPath is the width of the column of paths. The beginning of a longer path is cut off.
const mostPath = 40

func aligned(rows [][]string) []string {
	for _, row := range rows[1:] {
		if path := []rune(printable.Line(row[0])); len(path) > mostPath {
			row[0] = "..." + string(path[len(path)-mostPath+3:])
		}
	}
	var b strings.Builder
	verb.Table("", rows, func(row []string) []string { return row })(&b)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
