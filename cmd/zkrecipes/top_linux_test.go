package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// terminalOutput is what a program has written to its terminal.
type terminalOutput struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *terminalOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *terminalOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// TestTopOnATerminal: the whole screen shows the wait queues. Ctrl-C, q and a signal end it with 0,
// and the terminal is as before.
func TestTopOnATerminal(t *testing.T) {
	srv := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	defer srv.Close()
	conn, _, err := zk.Connect([]string{srv.Addr()}, watchdog.Patience, zk.WithLogInfo(false))
	must.Do(t, err)
	defer conn.Close()
	for _, path := range []string{"/t", "/t/l"} {
		must.Get(conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)))(t)
	}
	for range 2 {
		must.Get(conn.CreateProtectedEphemeralSequential("/t/l/lock-", []byte("10.1.2.3"), zk.WorldACL(zk.PermAll)))(t)
	}
	for name, end := range map[string]func(terminal *os.File, top *exec.Cmd){
		"q":      func(terminal *os.File, _ *exec.Cmd) { must.Get(terminal.WriteString("q"))(t) },
		"Ctrl-C": func(terminal *os.File, _ *exec.Cmd) { must.Get(terminal.WriteString("\x03"))(t) },
		"signal": func(_ *os.File, top *exec.Cmd) { must.Do(t, top.Process.Signal(os.Interrupt)) },
	} {
		top := exec.Command("zkrecipes", "top", "/t")
		top.Env = append(os.Environ(), "ZKRECIPES_SERVERS="+srv.Addr(), "TERM=xterm", "HOME="+filepath.Join(t.TempDir(), "home"))
		terminal := must.Get(pty.StartWithSize(top, &pty.Winsize{Rows: 20, Cols: 120}))(t)
		var seen terminalOutput
		read := make(chan struct{})
		go func() { // until the program has ended
			defer close(read)
			_, _ = io.Copy(&seen, terminal)
		}()
		shown := func() bool {
			text := seen.String()
			return strings.Contains(text, "/t/l") && strings.Contains(text, "10.1.2.3") && strings.Contains(text, "HOLDER")
		}
		for begun := time.Now(); !shown(); time.Sleep(5 * time.Millisecond) {
			if time.Since(begun) > watchdog.Patience {
				t.Fatalf("%s: the terminal shows\n%q", name, seen.String())
			}
		}
		end(terminal, top)
		if err := top.Wait(); err != nil {
			t.Errorf("%s: %v\n%q", name, err, seen.String())
		}
		<-read
		terminal.Close()
		const enter, leave = "\x1b[?1049h", "\x1b[?1049l" // the alternate screen
		if text := seen.String(); strings.Count(text, enter) != 1 || strings.Count(text, leave) != 1 || strings.Contains(text, "WARN") {
			t.Errorf("%s: the terminal got\n%q", name, text)
		}
	}
}
