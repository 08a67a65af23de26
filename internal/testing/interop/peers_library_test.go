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
	"github.com/zkrecipes/zkrecipes/internal/testing/peers"
)

// libraryProcess runs all contenders of another library in one process, as
// testdata/interop/cycles.py describes.
type libraryProcess struct {
	name  string
	pid   int
	stdin io.Writer
	lines *bufio.Scanner
	look  *zk.Conn // nil: the znodes that it creates in its path are not counted
	path  string
}

// startLibrary starts the process and returns when it has opened its sessions.
func startLibrary(tb testing.TB, name, path string, addrs []string, sessions int, timeout time.Duration) *libraryProcess {
	tb.Helper()
	var command []string
	if name == "curator" {
		command = installed(tb)(peers.Curator(tb, classes, "Cycles"))
	} else {
		command = installed(tb)(peers.Kazoo(tb, "cycles.py"))
	}
	cmd := exec.Command(command[0], append(command[1:], strings.Join(addrs, ","), strconv.FormatInt(timeout.Milliseconds(), 10), strconv.Itoa(sessions), path)...)
	var said strings.Builder
	cmd.Stderr = &said
	stdin := must.Get(cmd.StdinPipe())(tb)
	stdout := must.Get(cmd.StdoutPipe())(tb)
	must.Do(tb, cmd.Start())
	tb.Cleanup(func() {
		if tb.Failed() {
			_ = cmd.Process.Kill() // its contenders may be waiting for each other
		}
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil && !tb.Failed() {
			tb.Errorf("%s: %v\n%s", name, err, &said)
		}
	})
	p := &libraryProcess{name: name, pid: cmd.Process.Pid, stdin: stdin, lines: bufio.NewScanner(stdout), path: path}
	p.said(tb, "ready")
	return p
}

// run returns a workload of the process.
func (p *libraryProcess) run(workload string) run {
	return func(tb testing.TB, window time.Duration) float64 {
		return p.do(tb, workload, window.Milliseconds())
	}
}

// do makes the process carry out a line, and returns the rate.
func (p *libraryProcess) do(tb testing.TB, workload string, number int64) float64 {
	tb.Helper()
	made := creations(tb, p.look, p.path)
	must.Get(fmt.Fprintln(p.stdin, workload, number))(tb)
	var count, took, all int64
	must.Get(fmt.Sscan(p.said(tb, "cycles"), &count, &took, &all))(tb)
	made.atLeast(tb, all)
	if all == 0 {
		tb.Fatalf("%s: nothing was done in %q", p.name, workload)
	}
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
