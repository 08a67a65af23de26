package host_test

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// reports is the socket that roles connect to.
type reports struct{ listener net.Listener }

func listen(t testing.TB) *reports {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return &reports{l}
}

func (r *reports) env() string { return reportEnv + "=" + r.listener.Addr().String() }

// reporter is a process that sends reports.
type reporter struct {
	lines *bufio.Reader
	// first is the first line without the role.
	first string
}

// accept waits for the next process, which must have the given role.
func (r *reports) accept(t testing.TB, role string) *reporter {
	t.Helper()
	p := r.acceptWithin(t, role, patience)
	if p == nil {
		t.Fatalf("no %s has connected", role)
	}
	return p
}

// brief is enough for a connection that waits to be accepted.
const brief = 100 * time.Millisecond

// acceptWithin returns nil if no process connects within d.
func (r *reports) acceptWithin(t testing.TB, role string, d time.Duration) *reporter {
	t.Helper()
	must.Do(t, r.listener.(*net.TCPListener).SetDeadline(time.Now().Add(d)))
	conn, err := r.listener.Accept()
	if err != nil {
		return nil
	}
	t.Cleanup(func() { _ = conn.Close() })
	must.Do(t, conn.SetDeadline(time.Now().Add(patience)))
	p := &reporter{lines: bufio.NewReader(conn)}
	line := p.line(t)
	first, ok := strings.CutPrefix(line, role)
	if !ok {
		t.Fatalf("%q has connected instead of a %s", line, role)
	}
	p.first = strings.TrimPrefix(first, " ")
	return p
}

func (p *reporter) line(t testing.TB) string {
	t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("no report: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// died waits until the process has exited.
func (p *reporter) died(t testing.TB) {
	t.Helper()
	rest, err := io.ReadAll(p.lines)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatalf("the process has not exited; it reported %q", rest)
	}
}

// pid is the process id, which some roles send in the first line.
func (p *reporter) pid(t testing.TB) int {
	t.Helper()
	return must.Get(strconv.Atoi(p.first))(t)
}
