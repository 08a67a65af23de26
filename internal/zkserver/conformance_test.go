package zkserver_test

import (
	"errors"
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
// need a server that runs no other script and keeps empty containers, because the sessions of other
// scripts, and the deletion of containers, use ids too.
var countsTransactions = map[string]bool{"zxids": true, "multi": true}

// since maps a script to the first release that answers it.
var since = map[string]zkserver.Release{"checkalone": zkserver.Release39}

// TestConformance compares this server, as each release, with the golden transcripts of
// that release.
func TestConformance(t *testing.T) {
	if *update {
		t.Skip("-update records from the real server")
	}
	for _, like := range zkserver.Releases() {
		t.Run(like.String(), func(t *testing.T) {
			t.Parallel()
			addr := embedded(t, like)
			eachScript(t, like, func(t *testing.T, name, script string) {
				addr := addr
				if countsTransactions[name] {
					addr = embeddedWith(t, zkserver.Config{Like: like, TickTime: 200 * time.Millisecond, ReapInterval: time.Hour})
				}
				got := must.Get(play(addr, name, script))(t)
				compare(t, golden(t, name, like.Recorded()), got)
			})
		})
	}
}

// TestConformanceLive compares the installed ZooKeeper with the golden transcripts of its
// version. With -update it records them.
func TestConformanceLive(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(1))
	version := e.Installation().Version
	eachScript(t, releaseOf(t, version), func(t *testing.T, name, script string) {
		e := e
		if countsTransactions[name] {
			cfg := ensembletest.Quick(1)
			cfg.SystemProperties["znode.container.checkIntervalMs"] = "3600000"
			e = ensembletest.Start(t, cfg)
		}
		got := must.Get(play(e.Addrs()[0], name, script))(t)
		if *update {
			record(t, name, version, got)
		}
		compare(t, golden(t, name, version), got)
	})
}

func compare(t *testing.T, want, got string) {
	t.Helper()
	if got != want {
		t.Errorf("transcript differs from ZooKeeper's (-):\n%s", diff(want, got))
	}
}

// releaseOf returns the release line of a version.
func releaseOf(t *testing.T, version string) zkserver.Release {
	t.Helper()
	for _, r := range zkserver.Releases() {
		if strings.HasPrefix(version, r.String()+".") {
			return r
		}
	}
	t.Fatalf("ZooKeeper %q is of none of the release lines %v, which have golden transcripts", version, zkserver.Releases())
	return 0
}

// files returns the files that may have the transcript of a version. The first one that
// exists has it. A transcript is stored only where it differs from that of the next newer
// version. The newest has the files without a version.
func files(t *testing.T, name, version string) []string {
	var list []string
	base := filepath.Join(conformance, name)
	like := releaseOf(t, version)
	if version != like.Recorded() {
		list = append(list, base+"-"+version+".golden")
	}
	for ; like < zkserver.Newest; like++ {
		list = append(list, base+"-"+like.Recorded()+".golden")
	}
	return append(list, base+".golden")
}

func golden(t *testing.T, name, version string) string {
	t.Helper()
	return firstOf(t, files(t, name, version))
}

func firstOf(t *testing.T, files []string) string {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			return string(text)
		}
		if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	t.Fatalf("no golden transcript %v: record it with -update, from the newest version to the oldest", files)
	return ""
}

// record writes the transcript of a version.
func record(t *testing.T, name, version, transcript string) {
	t.Helper()
	files := files(t, name, version)
	if newer := files[1:]; len(newer) > 0 && firstOf(t, newer) == transcript {
		if err := os.Remove(files[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return
	}
	must.Do(t, os.WriteFile(files[0], []byte(transcript), 0o666))
}

// A session that a script left behind would expire later and use a transaction id while
// another script runs.
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
func embedded(t *testing.T, like zkserver.Release) string {
	t.Helper()
	return embeddedWith(t, zkserver.Config{
		Like:              like,
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

func eachScript(t *testing.T, like zkserver.Release, run func(t *testing.T, name, script string)) {
	files, err := filepath.Glob(filepath.Join(conformance, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", conformance, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if like < since[name] {
			continue
		}
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
