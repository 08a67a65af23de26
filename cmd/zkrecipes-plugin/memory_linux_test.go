package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/race"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// init, because TestMain exists on every system.
func init() {
	if os.Getenv(serverEnv) != "" {
		serve()
		os.Exit(0)
	}
}

// serverEnv makes the test binary a ZooKeeper server, until its stdin ends.
const serverEnv = "TEST_SERVER"

func serve() {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Addr())
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	s.Close()
}

// Half of the plugin's memory is the stacks of six goroutines: three of go-zookeeper, two of
// the stream, and one of the waiting call. docs/benchmark.md lists the parts. Most of the
// host's memory is gRPC's.
func TestWaitingSessionsTakeLittleMemory(t *testing.T) {
	const (
		sessions   = 500
		mostPlugin = 60 // KiB of resident memory for a session, including shared pages
		mostHost   = 48
	)
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // a host's; leaktest has changed it
	p, err := host.Launch(t.Context(), host.Config{Path: built(t)})
	if err != nil {
		t.Fatal(err)
	}
	var waiting, joined sync.WaitGroup
	defer waiting.Wait()
	defer p.Close(t.Context())
	cfg := recipes.SessionConfig{Servers: []string{serverProcess(t)}}
	lock := func() recipes.Lock {
		s, err := p.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Lock("/l", recipes.LockConfig{Joined: func(recipes.Place) { joined.Done() }})
		if err != nil {
			t.Fatal(err)
		}
		joined.Add(1)
		return l
	}
	if _, err := lock().Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	plugin, self := resident(t, p.PID()), resident(t, os.Getpid())
	for range sessions {
		l := lock()
		waiting.Go(func() { _, _ = l.Acquire(t.Context()) }) // until the plugin is closed
	}
	joined.Wait()
	debug.FreeOSMemory() // the plugin does so by itself
	each := func(pid, before int) int { return (resident(t, pid) - before) >> 10 / sessions }
	if kib := each(os.Getpid(), self); kib > mostHost && !race.Enabled {
		t.Errorf("a host takes %d KiB for a waiting session; want %d at most", kib, mostHost)
	} else {
		t.Logf("a host takes %d KiB for a waiting session", kib)
	}

	kib := each(p.PID(), plugin)
	for first, limit := kib, time.Now().Add(watchdog.Patience); kib > mostPlugin; kib = each(p.PID(), plugin) {
		if time.Now().After(limit) {
			t.Fatalf("a plugin takes %d KiB for a waiting session, and %d at first; want %d at most", kib, first, mostPlugin)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("a plugin takes %d KiB for a waiting session", kib)
}

// built builds the plugin, without the race detector.
func built(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "zkrecipes-plugin")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// serverProcess starts a ZooKeeper server in a separate process, whose memory does not count.
func serverProcess(t *testing.T) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

// resident returns the resident memory of a process in bytes.
func resident(t *testing.T, pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var size, pages int
	if err == nil {
		_, err = fmt.Sscan(string(text), &size, &pages)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
