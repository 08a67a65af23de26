package interop_test

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// libraryProcess runs all contenders of another library in one process.
type libraryProcess struct {
	name  string
	stdin io.Writer
	lines *bufio.Scanner
	look  *zk.Conn
	path  string
}

// libraryWay starts the process and returns when it has opened its sessions.
func libraryWay(tb testing.TB, name string, command []string, look *zk.Conn, addrs []string, n int) way {
	path := "/peers/" + name
	cmd := exec.Command(command[0], append(command[1:], strings.Join(addrs, ","), strconv.FormatInt(peerTimeout.Milliseconds(), 10), strconv.Itoa(n), path)...)
	var said strings.Builder
	cmd.Stderr = &said
	stdin := must.Get(cmd.StdinPipe())(tb)
	stdout := must.Get(cmd.StdoutPipe())(tb)
	must.Do(tb, cmd.Start())
	tb.Cleanup(func() {
		if tb.Failed() {
			_ = cmd.Process.Kill() // its contenders may wait for each other
		}
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil && !tb.Failed() {
			tb.Errorf("%s: %v\n%s", name, err, &said)
		}
	})
	p := &libraryProcess{name, stdin, bufio.NewScanner(stdout), look, path}
	p.said(tb, "ready")
	return way{name: name, cycle: p.cycle}
}

func (p *libraryProcess) cycle(tb testing.TB, window time.Duration) float64 {
	made := creations(tb, p.look, p.path)
	must.Get(fmt.Fprintln(p.stdin, window.Milliseconds()))(tb)
	var count, took, all int64
	must.Get(fmt.Sscan(p.said(tb, "cycles"), &count, &took, &all))(tb)
	made.atLeast(tb, all)
	return float64(count) / time.Duration(took).Seconds()
}

// said reads the next line of the process, which must begin with what, and returns the rest.
func (p *libraryProcess) said(tb testing.TB, what string) string {
	tb.Helper()
	if !p.lines.Scan() {
		tb.Fatalf("%s has ended before it said %q", p.name, what)
	}
	rest, ok := strings.CutPrefix(p.lines.Text(), what)
	if !ok {
		tb.Fatalf("%s said %q, not %q", p.name, p.lines.Text(), what)
	}
	return rest
}
