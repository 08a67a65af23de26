package interop_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

const (
	// requireEnv makes it a failure that Curator or kazoo is not there.
	requireEnv = "ZKRECIPES_REQUIRE_PEERS"
	// secondsEnv is how long each pair contends.
	secondsEnv = "ZKRECIPES_INTEROP_SECONDS"

	sessionTimeout = 3 * time.Second
	killEvery      = 5 * time.Second
)

// pairs are the recipes that share a line: theirs, and ours in which dialect.
var pairs = []struct {
	library, theirs, ours string
}{
	{"curator", "lock", "zookeeper/lock"},
	{"curator", "lock", "curator/lock"},
	{"curator", "selector", "curator/selector"},
	{"curator", "rw", "curator/rw"},
	{"curator", "election", "curator/election"},
	{"kazoo", "lock", "kazoo/lock"},
	{"kazoo", "rw", "kazoo/rw"},
	{"kazoo", "election", "kazoo/election"},
}

// TestInterop has two processes of another library and two of ours contend at one
// path, and kills a holder of each kind in turn. A witness outside ZooKeeper sees
// whether two are in that should exclude each other.
func TestInterop(t *testing.T) {
	ensembletest.Require(t)
	lasts := 5 * time.Second
	if s, err := strconv.Atoi(os.Getenv(secondsEnv)); err == nil {
		lasts = time.Duration(s) * time.Second
	}
	for _, p := range pairs {
		t.Run(p.library+" "+p.theirs+" and "+strings.ReplaceAll(p.ours, "/", " "), func(t *testing.T) {
			m := &match{
				t: t, server: ensembletest.Shared(t).Addrs()[0], path: "/interop-" + uuid.NewString(), witness: witness(t.TempDir()),
				turns: map[string]int{}, seen: map[int]string{},
			}
			if err := os.WriteFile(m.witness.file("counter"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			theirs := libraries[p.library](t)
			m.play(lasts,
				side{p.library, append(theirs, m.server, millis, p.theirs, m.path, string(m.witness))},
				side{"ours", []string{os.Args[0], m.server, millis, p.ours, m.path, string(m.witness)}},
			)
			m.judge(lasts)
		})
	}
}

var millis = strconv.Itoa(int(sessionTimeout.Milliseconds()))

// side is a library and how one of its processes is started.
type side struct {
	name    string
	command []string
}

// match is one pair at one path.
type match struct {
	t            *testing.T
	server, path string
	witness      witness

	mu        sync.Mutex
	turns     map[string]int // by side
	seen      map[int]string // who has counted to that number
	holder    *peer          // the last to take a turn
	handovers int            // turns that followed one of the other side
	reads     int
	timeouts  int
	lost      int // sessions of ours, by a busy machine
	kills     int
	longest   time.Duration // without any turn, but after a kill
	last      time.Time
	killed    time.Time
	broken    []string
	stopped   bool // what peers say from then on is of their end
}

// peer is one process.
type peer struct {
	side   side
	cmd    *exec.Cmd
	stdin  io.Closer
	ready  chan struct{}
	exited chan struct{}
}

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

func (m *match) told(p *peer, line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "ready":
		close(p.ready)
	case "timeout":
		m.timeouts++
	case "lost":
		m.lost++
	case "turn":
		n, err := strconv.Atoi(rest)
		if who, again := m.seen[n]; again || err != nil {
			m.broken = append(m.broken, fmt.Sprintf("%s and %s have both counted to %q", who, p.side.name, rest))
		}
		m.seen[n] = p.side.name
		m.took(p)
		m.holder = p
	case "read":
		m.reads++
		m.took(p)
	default:
		m.broken = append(m.broken, line)
	}
}

func (m *match) took(p *peer) {
	now := time.Now()
	if m.holder != nil && m.holder.side.name != p.side.name {
		m.handovers++
	}
	if !m.last.IsZero() && m.killed.Before(m.last) {
		m.longest = max(m.longest, now.Sub(m.last))
	}
	m.last = now
	m.turns[p.side.name]++
}

// play has two of each side contend, and kills one of the sides in turn.
func (m *match) play(lasts time.Duration, sides ...side) {
	m.t.Helper()
	peers := []*peer{m.start(sides[0]), m.start(sides[1]), m.start(sides[0]), m.start(sides[1])}
	defer func() {
		m.mu.Lock()
		m.stopped = true
		m.mu.Unlock()
		for _, p := range peers {
			_ = p.stdin.Close()
		}
		for _, p := range peers {
			select {
			case <-p.exited:
			case <-time.After(10 * time.Second): // it is stuck, which is not what is tested here
				_ = p.cmd.Process.Kill()
				<-p.exited
			}
		}
	}()
	for _, p := range peers {
		select {
		case <-p.ready:
		case <-p.exited:
			m.t.Fatalf("%s has ended; told %q", p.side.name, m.broken)
		case <-time.After(time.Minute):
			m.t.Fatalf("%s is not ready", p.side.name)
		}
	}
	start, look := time.Now(), time.NewTicker(50*time.Millisecond)
	defer look.Stop()
	kill := time.NewTicker(min(killEvery, lasts*2/5))
	defer kill.Stop()
	for {
		select {
		case <-look.C:
			if time.Since(start) >= lasts && m.enough() {
				return
			}
		case <-kill.C:
			if time.Since(start) >= lasts {
				continue
			}
			i := m.kills % len(peers)
			m.kill(peers[i])
			peers[i] = m.start(peers[i].side)
		}
	}
}

// enough reports whether both sides have had turns after each other, or the witness has
// seen enough. A busy machine may need longer than asked for.
func (m *match) enough() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.broken) > 0 || len(m.turns) == 2 && m.handovers >= 2
}

// kill kills a process while it holds, if it comes to hold within a session timeout.
func (m *match) kill(p *peer) {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	for start := time.Now(); time.Since(start) < sessionTimeout; time.Sleep(100 * time.Microsecond) {
		holder, err := os.ReadFile(m.witness.file("writer"))
		if err == nil && string(holder) == pid {
			break
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	m.mu.Lock()
	m.killed = time.Now()
	m.kills++
	m.mu.Unlock()
	// What it has left in the witness. Its znode stands for a session timeout more, so
	// nobody else has come in.
	if holder, err := os.ReadFile(m.witness.file("writer")); err == nil && string(holder) == pid {
		_ = os.Remove(m.witness.file("writer"))
	}
	_ = os.Remove(m.witness.file("reader-" + pid))
	if text, err := os.ReadFile(m.witness.file("counter")); err == nil && len(text) == 0 { // killed while it wrote
		m.mu.Lock()
		last := slices.Max(append(slices.Collect(maps.Keys(m.seen)), 0)) + 1
		m.mu.Unlock()
		if err := os.WriteFile(m.witness.file("counter"), []byte(strconv.Itoa(last)), 0o600); err != nil {
			m.t.Error(err)
		}
	}
}

func (m *match) judge(lasts time.Duration) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var sides []string
	for name, n := range m.turns {
		sides = append(sides, fmt.Sprintf("%s %d", name, n))
	}
	m.t.Logf("interop: %v turns (%d of readers) in %v, %d from one library to the other, %d kills, longest pause without a kill %v, %d timeouts, %d sessions lost, %d violations",
		sides, m.reads, lasts, m.handovers, m.kills, m.longest.Round(time.Millisecond), m.timeouts, m.lost, len(m.broken))
	for _, b := range m.broken {
		m.t.Error(b)
	}
}

// TestRealContendersAreSeen has ours, without a dialect, meet each recipe of the other
// libraries. It may be granted between two turns of theirs, until they meet.
func TestRealContendersAreSeen(t *testing.T) {
	ensembletest.Require(t)
	for _, p := range []struct {
		library, theirs, ours string
		want                  recipes.ForeignError
	}{
		{"kazoo", "lock", "lock", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Lock"}},
		{"kazoo", "election", "election", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Lock"}},
		{"curator", "election", "election", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "LeaderLatch"}},
		{"curator", "rw", "rw", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessReadWriteLock"}},
	} {
		t.Run(p.library+" "+p.theirs, func(t *testing.T) {
			m := &match{
				t: t, server: ensembletest.Shared(t).Addrs()[0], path: "/interop-" + uuid.NewString(), witness: witness(t.TempDir()),
				turns: map[string]int{}, seen: map[int]string{}, stopped: true,
			}
			if err := os.WriteFile(m.witness.file("counter"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			theirs := m.start(side{p.library, append(libraries[p.library](t), m.server, millis, p.theirs, m.path, string(m.witness))})
			defer func() { _ = theirs.cmd.Process.Kill(); <-theirs.exited }()
			s, err := zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: []string{m.server}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			own := witness(t.TempDir()) // it is let in between theirs, and not yet beside them
			if err := os.WriteFile(own.file("counter"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				err = own.turn(t.Context(), s, "", p.ours, m.path)
			}
			var got *recipes.ForeignError
			if !errors.As(err, &got) || got.Dialect != p.want.Dialect || got.Recipe != p.want.Recipe || got.Znode == "" {
				t.Errorf("got %v; want a %s %s", err, p.want.Dialect, p.want.Recipe)
			}
		})
	}
}

// libraries are how their peers are started.
var libraries = map[string]func(*testing.T) []string{"curator": curator, "kazoo": kazoo}

// curator compiles the peer, with the compiler that is part of every Java runtime of
// Debian, and returns its command.
func curator(t *testing.T) []string {
	const jars = "/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-nop.jar"
	if _, err := os.Stat("/usr/share/java/curator-recipes.jar"); err != nil {
		missing(t, "Curator (Debian's libcurator-recipes-java)", err)
	}
	installation, err := ensemble.Find()
	if err != nil {
		t.Fatal(err)
	}
	java, classes := installation.Java, t.TempDir()
	source := filepath.Join("..", "..", "testdata", "interop", "Peer.java")
	if out, err := exec.Command(java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", jars, "-d", classes, source).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, out)
	}
	return []string{java, "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jars + ":" + classes, "Peer"}
}

func kazoo(t *testing.T) []string {
	const python = "/usr/bin/python3" // Debian's packages are for Debian's own
	if err := exec.Command(python, "-c", "import kazoo").Run(); err != nil {
		missing(t, "kazoo (Debian's python3-kazoo)", err)
	}
	return []string{python, filepath.Join("..", "..", "testdata", "interop", "peer.py")}
}

func missing(t *testing.T, what string, err error) {
	t.Helper()
	if os.Getenv(requireEnv) != "" {
		t.Fatalf("%s is not there: %v (and %s is set: it must be)", what, err, requireEnv)
	}
	t.Skipf("SKIPPED beside another library, one line with it is not shown to work: no %s: %v", what, err)
}
