package zkserver_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

var update = flag.Bool("update", false, "record the golden transcripts from a real ZooKeeper")

const conformance = "../../testdata/conformance"

// countsTransactions names the scripts that show which requests use a transaction id. They
// need servers of their own: deleting the containers and sessions of other scripts uses
// ids too.
var countsTransactions = map[string]bool{"zxids": true}

// TestConformance compares this server with the golden transcripts, which are recorded
// from ZooKeeper 3.8.0.
func TestConformance(t *testing.T) {
	if *update {
		t.Skip("-update records from the real server")
	}
	addr := embedded(t)
	eachScript(t, func(t *testing.T, name, script string) {
		golden := must.Get(os.ReadFile(filepath.Join(conformance, name+".golden")))(t)
		addr := addr
		if countsTransactions[name] {
			addr = embedded(t)
		}
		got := must.Get(play(addr, name, script))(t)
		if got != string(golden) {
			t.Errorf("transcript differs from ZooKeeper's (-):\n%s", diff(string(golden), got))
		}
	})
}

// TestConformanceLive runs the scripts against both servers and compares the answers, so
// that no mistake in a golden transcript goes unnoticed. With -update it writes the golden
// transcripts.
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
			must.Do(t, os.WriteFile(filepath.Join(conformance, name+".golden"), []byte(want), 0o666))
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

// A session that a script left would expire later and use a transaction id while another
// script runs.
func TestScriptsLeaveNoSession(t *testing.T) {
	s := must.Get(zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Minute}))(t)
	defer s.Close()
	script := must.Get(os.ReadFile(filepath.Join(conformance, "unknownops.txt")))(t)
	must.Get(play(s.Addr(), "unknownops", string(script)))(t)
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
	s := must.Get(zkserver.Listen(cfg))(t)
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
			run(t, name, string(must.Get(os.ReadFile(file))(t)))
		})
	}
}

// diff returns the lines that differ, each below its command.
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
