package run

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// lineSession is a session with a contender in a wait queue.
type lineSession struct {
	recipes.Client
	mu    sync.Mutex
	line  []recipes.Contender
	reads int
}

// terminalText holds the output since the last read.
type terminalText struct {
	mu   sync.Mutex
	text string
}

func (t *terminalText) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text += string(p)
	return len(p), nil
}

func (t *terminalText) read() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.text = "" }()
	return t.text
}

func (s *lineSession) ID() int64 { return 7 }

func (s *lineSession) Contenders(context.Context, string, ...recipes.Kind) (recipes.Lines, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return recipes.Lines{Contenders: s.line}, nil
}

func contender(session int64, data string, holds bool) recipes.Contender {
	return recipes.Contender{
		Kind: recipes.KindLock, SessionID: session, Data: []byte(data), Holds: holds,
		Since: time.Date(2026, 11, 22, 14, 2, 3, 0, time.UTC),
	}
}

// TestWaitAtATerminal: one line shows the contenders ahead, and is redrawn only after a
// change. It is cut to the width of the terminal, and erased after the wait.
func TestWaitAtATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := &terminalText{}
		s := &lineSession{line: []recipes.Contender{
			contender(5, "nightly\x1b[2J", true), contender(6, "other", false), contender(7, "me", false), contender(8, "later", false),
		}}
		w := &waitLine{t: &verb.Tool{Stderr: said}, path: "/l", columns: 90}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx, s, recipes.KindLock) }()
		step := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := said.read(); got != want {
				t.Fatalf("it says %q, want %q", got, want)
			}
		}
		step(900*time.Millisecond, "")
		step(200*time.Millisecond, "\r\x1b[Kzkrecipes: waiting for /l: 2 ahead, held by \"nightly\\x1b[2J\", in line since 2026-11-22T14")
		step(time.Hour, "")
		s.mu.Lock()
		if s.reads > 130 {
			t.Errorf("%d reads in an hour", s.reads)
		}
		s.line = slices.Clone(s.line[1:])
		s.line[0].Holds = true
		s.mu.Unlock()
		step(longestPause, "\r\x1b[Kzkrecipes: waiting for /l: 1 ahead, held by other, in line since 2026-11-22T14:02:03Z")
		cancel()
		<-done
		step(0, "\r\x1b[K")
	})
}

func TestShortWaitSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		w := &waitLine{t: &verb.Tool{Stderr: &said}, path: "/l", columns: 90}
		ctx, cancel := context.WithTimeout(t.Context(), firstPause/2)
		defer cancel()
		w.run(ctx, &lineSession{}, recipes.KindLock)
		if said.Len() > 0 {
			t.Errorf("it says %q", said.String())
		}
	})
}

// TestHoldersAreNamed: the text has the name of the first holder, and the number of the others.
func TestHoldersAreNamed(t *testing.T) {
	a := aheadOf(7, []recipes.Contender{contender(1, "a", true), contender(2, "b", true), contender(3, "c", false)})
	if got, want := a.String(), "3 ahead, held by a, in line since 2026-11-22T14:02:03Z, and 1 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := aheadOf(1, []recipes.Contender{contender(1, "a", true)}).String(); got != "0 ahead" {
		t.Errorf("alone it is %q", got)
	}
}
