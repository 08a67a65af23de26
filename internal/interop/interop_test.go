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

// pairs are the recipes that share a path: theirs, and ours in which dialect. free says
// that their turns do not exclude each other; a short run of them is shorter.
var pairs = []struct {
	library, theirs, ours string
	free                  bool
}{
	{"curator", "lock", "zookeeper/lock", false},
	{"curator", "lock", "curator/lock", false},
	{"curator", "selector", "curator/selector", false},
	{"curator", "rw", "curator/rw", false},
	{"curator", "election", "curator/election", false},
	{"curator", "semaphore", "curator/semaphore", false},
	{"curator", "counter", "curator/counter", true},
	{"curator", "queue", "curator/queue", true},
	{"kazoo", "lock", "kazoo/lock", false},
	{"kazoo", "rw", "kazoo/rw", false},
	{"kazoo", "election", "kazoo/election", false},
	{"kazoo", "semaphore", "kazoo/semaphore", false},
	{"kazoo", "counter", "kazoo/counter", true},
	{"kazoo", "group", "kazoo/group", true},
	{"kazoo", "queue", "kazoo/queue", true},
}

// TestInterop has two processes of another library and two of ours contend at one
// path, and kills a holder of each kind in turn. A witness outside ZooKeeper sees
// whether two are in that should exclude each other.
func TestInterop(t *testing.T) {
	ensembletest.Require(t)
	for _, p := range pairs {
		lasts := 5 * time.Second
		if p.free {
			lasts = 2 * time.Second
		}
		if s, err := strconv.Atoi(os.Getenv(secondsEnv)); err == nil {
			lasts = time.Duration(s) * time.Second
		}
		t.Run(p.library+" "+p.theirs+" and "+strings.ReplaceAll(p.ours, "/", " "), func(t *testing.T) {
			m := &match{
				t: t, server: ensembletest.Shared(t).Addrs()[0], path: "/interop-" + uuid.NewString(), witness: witness(t.TempDir()),
				turns: map[string]int{}, seen: map[int]string{}, put: map[string]int{}, taken: map[string]int{}, free: p.free,
			}
			if err := os.WriteFile(m.witness.file("counter"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			theirs := libraries[p.library](t)
			m.play(lasts,
				side{p.library, append(theirs, m.server, millis, p.theirs, m.path, string(m.witness))},
				side{"ours", []string{os.Args[0], m.server, millis, p.ours, m.path, string(m.witness)}},
			)
			if p.theirs == "queue" {
				m.count(recipes.Dialect(filepath.Dir(p.ours)))
			}
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
	most      int            // turns of another between two of one, without a kill between
	since     map[*peer]map[*peer]int
	put       map[string]int // elements of a queue, and how often
	taken     map[string]int
	free      bool
	reads     int
	timeouts  int
	lost      int // sessions of ours, by a busy machine
	kills     int
	longest   time.Duration // without any turn, but after a kill
	recovered time.Duration // the longest pause after a kill
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
	what, rest, _ := strings.Cut(line, " ")
	if m.stopped && what != "put" && what != "took" {
		return
	}
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
	case "held":
		m.took(p)
		m.holder = p
	case "put":
		m.put[rest]++
	case "took":
		m.taken[rest]++
		m.took(p)
		m.holder = p
	case "enters":
	case "passed":
		if n, err := strconv.Atoi(rest); n < 2 || err != nil {
			m.broken = append(m.broken, p.side.name+" has passed alone")
		}
		m.took(p)
	default:
		m.broken = append(m.broken, line)
	}
}

// turnsOf is how many turns a side has had.
func (m *match) turnsOf(side string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turns[side]
}

// TestRealDoubleBarriersAreRefused has ours meet a member of each library's double barrier,
// and leave nothing that it could count: it passes with another of its own.
func TestRealDoubleBarriersAreRefused(t *testing.T) {
	ensembletest.Require(t)
	for _, library := range []string{"curator", "kazoo"} {
		t.Run(library, func(t *testing.T) {
			m := &match{
				t: t, server: ensembletest.Shared(t).Addrs()[0], path: "/interop-" + uuid.NewString(), witness: witness(t.TempDir()),
				turns: map[string]int{}, seen: map[int]string{},
			}
			theirs := side{library, append(libraries[library](t), m.server, millis, "barrier", m.path, string(m.witness))}
			start := func() {
				p := m.start(theirs)
				t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.exited })
			}
			s, err := zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: []string{m.server}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			g, err := s.Group(m.path, recipes.GroupConfig{})
			if err != nil {
				t.Fatal(err)
			}
			members, err := g.Watch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waiting := func(n int) {
				for now := range members {
					if len(now) >= n {
						return
					}
				}
				t.Fatal("the watch has ended")
			}
			start()
			waiting(1)
			b, err := s.DoubleBarrier(m.path, recipes.DoubleBarrierConfig{Size: 2})
			if err != nil {
				t.Fatal(err)
			}
			var got *recipes.ForeignError
			if _, err := b.Enter(t.Context(), nil); !errors.As(err, &got) || string(got.Dialect) != library {
				t.Errorf("got %v", err)
			}
			if m.turnsOf(library) > 0 {
				t.Errorf("%s has passed without another", library)
			}
			start()
			for m.turnsOf(library) < 2 {
				select {
				case <-members: // as when ready is made, or a member goes
				case <-time.After(10 * time.Millisecond):
				case <-t.Context().Done():
					t.Fatal("they have not passed together")
				}
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, b := range m.broken {
				t.Error(b)
			}
			m.stopped = true
		})
	}
}

func (m *match) took(p *peer) {
	now := time.Now()
	if m.holder != nil && m.holder.side.name != p.side.name {
		m.handovers++
	}
	switch {
	case m.last.IsZero():
	case m.killed.Before(m.last):
		m.longest = max(m.longest, now.Sub(m.last))
	default:
		m.recovered = max(m.recovered, now.Sub(m.killed))
		m.since = nil
	}
	m.last = now
	m.turns[p.side.name]++
	if m.since == nil {
		m.since = map[*peer]map[*peer]int{}
	}
	for other, n := range m.since {
		if other != p {
			n[p]++
		}
	}
	for _, n := range m.since[p] {
		m.most = max(m.most, n)
	}
	m.since[p] = map[*peer]int{}
}

// count takes what is left in a queue, and compares. A process that is ended may have put
// an element, or taken one, without having said so.
func (m *match) count(d recipes.Dialect) {
	m.t.Helper()
	s, err := zookeeper.Open(m.t.Context(), recipes.SessionConfig{Servers: []string{m.server}})
	if err != nil {
		m.t.Fatal(err)
	}
	defer s.Close(m.t.Context())
	q, err := s.Queue(m.path, recipes.QueueConfig{Dialect: d})
	if err != nil {
		m.t.Fatal(err)
	}
	left := 0
	for ; ; left++ {
		if _, err := q.Peek(m.t.Context()); errors.Is(err, recipes.ErrEmpty) {
			break
		}
		e, err := q.Take(m.t.Context())
		if err != nil {
			m.t.Fatal(err)
		}
		m.taken[string(e.Data)]++
	}
	lost, unsaid := 0, 0
	for id := range m.put {
		if m.taken[id] == 0 {
			lost++
		}
	}
	for id, n := range m.taken {
		if n > 1 {
			m.broken = append(m.broken, fmt.Sprintf("%s was taken %d times", id, n))
		}
		if m.put[id] == 0 {
			unsaid++
		}
	}
	const peers = 4
	if ended := m.kills + peers; lost > ended || unsaid > ended {
		m.broken = append(m.broken, fmt.Sprintf("%d elements lost and %d taken that nobody had put; %d processes were ended", lost, unsaid, ended))
	}
	m.t.Logf("interop: of %d elements %d were left, and %d went with a process that was ended", len(m.put), left, lost)
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
	for start := time.Now(); !m.free && time.Since(start) < sessionTimeout; time.Sleep(100 * time.Microsecond) {
		holder, err := os.ReadFile(m.witness.file("writer"))
		if err == nil && string(holder) == pid {
			break
		}
		if _, err := os.Stat(m.witness.file("slot-" + pid)); err == nil {
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
	_ = os.Remove(m.witness.file("slot-" + pid))
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
	m.t.Logf("interop: %v turns (%d of readers) in %v, %d from one library to the other, %d kills, longest pause without a kill %v, after one %v, at most %d turns of another between two of one, %d timeouts, %d sessions lost, %d violations",
		sides, m.reads, lasts, m.handovers, m.kills, m.longest.Round(time.Millisecond), m.recovered.Round(time.Millisecond), m.most, m.timeouts, m.lost, len(m.broken))
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
		{"curator", "semaphore", "semaphore", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessSemaphoreV2"}},
		{"kazoo", "semaphore", "semaphore", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Semaphore"}},
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
