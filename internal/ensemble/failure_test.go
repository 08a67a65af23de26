package ensemble

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// fakeJava is an installation whose java is the given shell script.
func fakeJava(t *testing.T, script string) Installation {
	t.Helper()
	sh, err := os.Stat("/bin/sh")
	if err != nil || sh.IsDir() {
		t.Skip("no /bin/sh")
	}
	path := t.TempDir() + "/java"
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return Installation{Java: path, Classpath: "none", Source: "a test"}
}

func TestAFailedStartShowsTheLogAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	_, err := Start(t.Context(), Config{
		Dir:          dir,
		Installation: fakeJava(t, "echo the dog ate the jar >&2; exit 7"),
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"server 1", "exit status 7", "the dog ate the jar"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error without %q: %v", want, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStartFailsAtItsDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Config{Installation: fakeJava(t, "exec sleep 1000")})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start = %v, want a deadline exceeded", err)
	}
}

func TestJavaThatCannotBeRun(t *testing.T) {
	_, err := Start(t.Context(), Config{Installation: Installation{Java: "/nonexistent/java"}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start = %v, want an error that java does not exist", err)
	}
}

func TestInvalidConfigs(t *testing.T) {
	for name, cfg := range map[string]Config{
		"even number of servers": {Servers: 2},
		"negative servers":       {Servers: -1},
		"tick too short":         {TickTime: time.Microsecond},
		"negative heap":          {HeapMiB: -1},
	} {
		if e, err := Start(t.Context(), cfg); err == nil {
			t.Errorf("%s: started", name)
			e.Stop()
		}
	}
}

func TestATakenPortIsRetriedWithOthers(t *testing.T) {
	// A real server logs this if another process listens on its port.
	installation := fakeJava(t, `for cfg; do :; done
if grep -q clientPort=$TAKEN "$cfg"; then echo 'java.net.BindException: Address already in use'; exit 1; fi
echo "not the taken port"; exit 2`)
	t.Setenv("TAKEN", "11111$")
	picks := 0
	pick := func(n int) ([]int, error) {
		picks++
		if picks == 1 {
			return []int{11111, 0, 0, 0}, nil
		}
		return []int{22222, 0, 0, 0}, nil
	}
	_, err := start(t.Context(), Config{Installation: installation}, pick)
	if picks != 2 || err == nil || !strings.Contains(err.Error(), "not the taken port") {
		t.Errorf("after %d picks: %v; want a start with the second pick", picks, err)
	}
}

func TestPickedPortsAreDistinctAndFree(t *testing.T) {
	ports, err := pickPorts(40)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, port := range ports {
		if seen[port] {
			t.Errorf("port %d twice", port)
		}
		seen[port] = true
		l, err := net.Listen("tcp", loopback.address(port))
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		l.Close()
	}
}
