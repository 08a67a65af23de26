package interop_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// side is a library and how one of its processes is started.
type side struct {
	name    string
	command []string
}

// peer is one process.
type peer struct {
	side   side
	cmd    *exec.Cmd
	stdin  io.Closer
	ready  chan struct{}
	exited chan struct{}
}

// starts reports whether the process is not ready yet.
func (p *peer) starts() bool {
	select {
	case <-p.ready:
		return false
	default:
		return true
	}
}

func (p *peer) pid() string { return strconv.Itoa(p.cmd.Process.Pid) }

// open opens a session on the server of the match. It is closed when the test ends.
func (m *match) open() recipes.Client {
	m.t.Helper()
	s := must.Get(zookeeper.Open(m.t.Context(), recipes.SessionConfig{Servers: []string{m.server}}))(m.t)
	m.t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// side is a library whose processes run one recipe at the path of the match.
func (m *match) side(library, recipe string) side {
	return side{library, append(contender(m.t, library), m.server, millis, recipe, m.path, string(m.witness))}
}

func (m *match) start(s side) *peer {
	m.t.Helper()
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Env = append(os.Environ(), peerEnv+"=1")
	output := new(bytes.Buffer)
	cmd.Stderr = output
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("stderr of %s:\n%s", s.name, output)
		}
	})
	stdin, stdout := must.Get(cmd.StdinPipe())(m.t), must.Get(cmd.StdoutPipe())(m.t)
	must.Do(m.t, cmd.Start())
	p := &peer{side: s, cmd: cmd, stdin: stdin, ready: make(chan struct{}), exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			m.receive(p, lines.Text())
		}
		_ = cmd.Wait()
	}()
	return p
}
