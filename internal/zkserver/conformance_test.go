package zkserver_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

var update = flag.Bool("update", false, "record the golden transcripts anew, from a real ZooKeeper")

const conformance = "../../testdata/conformance"

// countsTransactions names the scripts that show which request takes a transaction id.
// They need servers of their own. Containers and sessions of other scripts are removed
// some time later, and that takes ids too.
var countsTransactions = map[string]bool{"zxids": true}

// TestConformance compares this server with what ZooKeeper 3.8.0 answered when
// the golden transcripts were recorded.
func TestConformance(t *testing.T) {
	if *update {
		t.Skip("-update records from the real server")
	}
	addr := embedded(t)
	eachScript(t, func(t *testing.T, name, script string) {
		golden, err := os.ReadFile(filepath.Join(conformance, name+".golden"))
		if err != nil {
			t.Fatal(err)
		}
		addr := addr
		if countsTransactions[name] {
			addr = embedded(t)
		}
		got, err := play(addr, name, script)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(golden) {
			t.Errorf("transcript differs from ZooKeeper's (-) :\n%s", diff(string(golden), got))
		}
	})
}

// TestConformanceLive runs the scripts against a real ZooKeeper, so that the
// golden transcripts cannot drift away from it. With -update it writes them.
func TestConformanceLive(t *testing.T) {
	real := ensembletest.Start(t, ensembletest.Quick(1)).Addrs()[0]
	addr := embedded(t)
	eachScript(t, func(t *testing.T, name, script string) {
		real, addr := real, addr
		if countsTransactions[name] {
			real, addr = ensembletest.Start(t, ensembletest.Quick(1)).Addrs()[0], embedded(t)
		}
		want, err := play(real, name, script)
		if err != nil {
			t.Fatal("ZooKeeper: ", err)
		}
		if *update {
			if err := os.WriteFile(filepath.Join(conformance, name+".golden"), []byte(want), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		got, err := play(addr, name, script)
		if err != nil {
			t.Fatal("zkserver: ", err)
		}
		if got != want {
			t.Errorf("transcript differs from ZooKeeper's (-):\n%s", diff(want, got))
		}
	})
}

// TestScriptsLeaveNoSession: one that expired later would take a transaction id while
// another script runs.
func TestScriptsLeaveNoSession(t *testing.T) {
	s, err := zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	script, err := os.ReadFile(filepath.Join(conformance, "unknownops.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := play(s.Addr(), "unknownops", string(script)); err != nil {
		t.Fatal(err)
	}
	if left := s.Sessions(); len(left) != 0 {
		t.Errorf("left: %#x", left)
	}
}

// embedded starts this server with the settings of ensembletest.Quick.
func embedded(t *testing.T) string {
	t.Helper()
	return embeddedWith(t, zkserver.Config{
		TickTime:          200 * time.Millisecond,
		MaxSessionTimeout: time.Minute,
		ReapInterval:      200 * time.Millisecond,
	})
}

func embeddedWith(t *testing.T, cfg zkserver.Config) string {
	t.Helper()
	s, err := zkserver.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Addr()
}

func eachScript(t *testing.T, run func(t *testing.T, name, script string)) {
	files, err := filepath.Glob(filepath.Join(conformance, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", conformance, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			run(t, name, string(script))
		})
	}
}

// diff shows the lines that differ, each under the command that it answers.
func diff(want, got string) string {
	var b strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	command := ""
	for i := range max(len(w), len(g)) {
		var x, y string
		if i < len(w) {
			x = w[i]
		}
		if i < len(g) {
			y = g[i]
		}
		if x == y {
			if !strings.HasPrefix(x, "    ") {
				command = x
			}
			continue
		}
		b.WriteString(command + "\n  - " + strings.TrimSpace(x) + "\n  + " + strings.TrimSpace(y) + "\n")
	}
	return b.String()
}
