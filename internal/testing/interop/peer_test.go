package interop_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
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

func (p *peer) pid() string { return strconv.Itoa(p.cmd.Process.Pid) }

func (m *match) start(s side) *peer {
	m.t.Helper()
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Env = append(os.Environ(), peerEnv+"=1")
	said := new(bytes.Buffer)
	cmd.Stderr = said
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("%s said:\n%s", s.name, said)
		}
	})
	stdin, err := cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	p := &peer{side: s, cmd: cmd, stdin: stdin, ready: make(chan struct{}), exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			m.told(p, lines.Text())
		}
		_ = cmd.Wait()
	}()
	return p
}
