package recipestest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestPluginKilled: if the plugin is killed, the host notices at once, long before its own
// deadline. The next contender is granted when the server has expired the session.
func TestPluginKilled(t *testing.T) {
	t.Parallel()
	const timeout = 8 * time.Second // a busy machine can stop the host for seconds
	addrs := ensembletest.Shared(t).Addrs()
	path := "/plugin-killed-" + uuid.NewString()
	p := launch(t)
	s := open(t, p.Open, timeout, addrs...)
	h, next := acquire(t, s, path), wait(t, open(t, zookeeper.Open, 0, addrs...), path)
	events := s.Events(t.Context())
	inLine := wait(t, open(t, p.Open, timeout, addrs...), path)

	lost := h.Done()
	killed := time.Now()
	kill(t, p.PID())
	await(t, lost, "the loss of the hold")
	t.Logf("lost after %v", time.Since(killed))
	for what, err := range map[string]error{"hold": h.Err(), "session": s.Err(), "write": h.Write(t.Context()), "release": h.Release(t.Context())} {
		if !errors.Is(err, recipes.ErrPluginLost) || !errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("%s: %v; want ErrPluginLost", what, err)
		}
	}
	var last recipes.Event
	for e := range events {
		last = e
	}
	if last.State != recipes.Lost || !errors.Is(last.Reason, recipes.ErrPluginLost) {
		t.Errorf("the last event is %+v", last)
	}
	await(t, inLine.done, "the end of the wait")
	if !errors.Is(inLine.err, recipes.ErrPluginLost) {
		t.Errorf("the wait ended with %v", inLine.err)
	}
	if !next.waiting() {
		t.Error("the next contender was granted before the session can have expired")
	}
	next.granted(t)
	t.Logf("granted after %v", next.at.Sub(killed))
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

const (
	hostEnv    = "RECIPESTEST_HOST" // its value, plugin|server|path, makes the test binary a host
	longerThan = time.Minute        // session timeout of the host that is killed
)

// TestHostKilled: a killed host cannot release its locks. Its plugin closes the sessions, so the
// locks are free at once, long before the session timeout.
func TestHostKilled(t *testing.T) {
	t.Parallel()
	addrs := ensembletest.Shared(t).Addrs()
	path := "/host-killed-" + uuid.NewString()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), hostEnv+"="+strings.Join([]string{pluginPath(t), addrs[0], path}, "|"))
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(said, "holding") {
		t.Fatalf("the other host printed %q, %v", said, err)
	}
	next := wait(t, open(t, zookeeper.Open, 0, addrs...), path)
	if !next.waiting() {
		t.Fatal("granted while the other host holds")
	}
	killed := time.Now()
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	next.granted(t)
	if took := next.at.Sub(killed); took >= longerThan { // the session must be closed, not expire
		t.Errorf("free after %v; the session's timeout is %v", took, longerThan)
	}
	t.Logf("free after %v; the session's timeout is %v", next.at.Sub(killed), longerThan)
}

// beHost acquires a lock through a plugin and holds it until it is killed.
func beHost(instructions string) {
	fields := strings.Split(instructions, "|")
	err := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog.Patience)
		defer cancel()
		p, err := host.Launch(ctx, host.Config{Path: fields[0]})
		if err != nil {
			return err
		}
		s, err := p.Open(ctx, recipes.SessionConfig{Servers: fields[1:2], SessionTimeout: longerThan})
		if err != nil {
			return err
		}
		l, err := s.Lock(fields[2], recipes.LockConfig{})
		if err != nil {
			return err
		}
		_, err = l.Acquire(ctx)
		return err
	}()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("holding")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or its parent is
}
