package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
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
		mostPlugin = 66 // KiB of resident memory for a session, including shared pages; 59 or 60 on a quiet machine
		mostHost   = 48
	)
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the collector's setting in a host; leaktest has changed it
	p := must.Get(host.Launch(t.Context(), host.Config{Path: built(t), StartTimeout: watchdog.Patience}))(t)
	var waiting, joined sync.WaitGroup
	defer waiting.Wait()
	defer p.Close(t.Context())
	// A long timeout means few pings, which would delay the plugin's return of memory.
	cfg := recipes.SessionConfig{Servers: []string{serverProcess(t)}, SessionTimeout: 40 * time.Second}
	lock := func() recipes.Lock {
		s := must.Get(p.Open(t.Context(), cfg))(t)
		l := must.Get(s.Lock("/l", recipes.LockConfig{Joined: func(recipes.Place) { joined.Done() }}))(t)
		joined.Add(1)
		return l
	}
	must.Get(lock().Acquire(t.Context()))(t)
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

// serverProcess starts a ZooKeeper server in a separate process, whose memory does not count.
func serverProcess(t *testing.T) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"=1")
	stdin, stdout := must.Get(cmd.StdinPipe())(t), must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		must.Report(t, cmd.Wait())
	})
	return strings.TrimSpace(must.Get(bufio.NewReader(stdout).ReadString('\n'))(t))
}

// resident returns the resident memory of a process in bytes.
func resident(t *testing.T, pid int) int {
	text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)))(t)
	var size, pages int
	must.Get(fmt.Sscan(string(text), &size, &pages))(t)
	return pages * os.Getpagesize()
}
