package top

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// drawn returns the rows of a simulated terminal.
func drawn(terminal tcell.SimulationScreen) string {
	cells, columns, _ := terminal.GetContents()
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(string(c.Runes))
		if i%columns == columns-1 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(watchdog.Patience); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// TestScreen: the screen shows the longest waits first, scrolls, shows what was written to stderr,
// and ends at a key.
func TestScreen(t *testing.T) {
	terminal := tcell.NewSimulationScreen("UTF-8")
	var quit atomic.Int32
	s := must.Get(startScreen(terminal, func() { quit.Add(1) }))(t)
	defer s.close()
	terminal.SetSize(100, 9)
	has := func(texts ...string) func() bool {
		return func() bool {
			s.mu.Lock() // no redraw is in progress
			defer s.mu.Unlock()
			all := drawn(terminal)
			for _, text := range texts {
				if absent, found := strings.CutPrefix(text, "!"); found == strings.Contains(all, absent) && found || !found && !strings.Contains(all, text) {
					return false
				}
			}
			return true
		}
	}
	await(t, "the beginning", has("connecting"))
	c := &tree{queues: map[string]string{"/r/a": "10h", "/r/b": "20h 8", "/r/c": "30h 7", "/r/d": "7h 30", "/r/e": "6h"}, kind: map[string]recipes.Kind{"/r/e": recipes.KindElection}}
	must.Do(t, s.show(rounds(t, newSurvey("/r", asker{}), c)))
	await(t, "the table", has("PATH", "/r/c", "/r/b", "possible deadlock: session 0x7 holds /r/d", "unknown without -admin", "!/r/e", "!connecting"))
	if all := drawn(terminal); strings.Index(all, "/r/c  lock") > strings.Index(all, "/r/b  lock") {
		t.Errorf("the longest wait is not first:\n%s", all)
	}
	terminal.InjectKey(tcell.KeyEnd, 0, 0)
	await(t, "the end of the table", has("/r/e", "!/r/c  lock"))
	terminal.InjectKey(tcell.KeyHome, 0, 0)
	await(t, "the beginning of the table", has("/r/c  lock", "!/r/e"))
	terminal.InjectKey(tcell.KeyDown, 0, 0)
	await(t, "one down", has("/r/b  lock", "!/r/c  lock"))
	must.Get(s.Write([]byte("zkrecipes: waiting for ZooKeeper\n")))(t)
	await(t, "a message", has("waiting for ZooKeeper"))
	for i, press := range []func(){
		func() { terminal.InjectKey(tcell.KeyRune, 'q', 0) },
		func() { terminal.InjectKey(tcell.KeyCtrlC, 0, tcell.ModCtrl) },
	} {
		press()
		await(t, "the end", func() bool { return int(quit.Load()) == i+1 })
	}
}

// TestCellsCannotMoveTheCursor: no data that a client has stored can do that.
func TestCellsCannotMoveTheCursor(t *testing.T) {
	l := lineAt(time.Now(), recipes.KindLock, "1h")
	l.contenders[0].Data = []byte("a\x1b[2J\n" + strings.Repeat("x", 200))
	now := time.Now()
	for _, text := range []string{l.text(&sessions{}, now), aligned([][]string{l.cells(&sessions{}, now)})[0]} {
		if strings.ContainsAny(text, "\x1b\n") || !strings.Contains(text, `a\x1b[2J\n`) || len(text) > 200 {
			t.Errorf("%q", text)
		}
	}
}
