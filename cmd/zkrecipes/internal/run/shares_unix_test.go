//go:build unix

package run

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// member is a member whose numbers a test chooses.
type member struct {
	recipes.Portion
	changes  chan []recipes.Share
	left     chan struct{}
	leave    sync.Once
	released chan int
}

func newMember() *member {
	return &member{changes: make(chan []recipes.Share, 1), left: make(chan struct{}), released: make(chan int, 100)}
}

func (m *member) Changes() <-chan []recipes.Share { return m.changes }

func (m *member) Done() <-chan struct{} { return m.left }

func (m *member) Err() error {
	select {
	case <-m.left:
		return recipes.ErrReleased
	default:
		return nil
	}
}

func (m *member) Leave(context.Context) error { m.leave.Do(func() { close(m.left) }); return nil }

// share is a share with the number as its token.
type share struct {
	recipes.Share
	of      *member
	number  int
	revoked chan struct{}
	mu      sync.Mutex
	err     error
}

func (m *member) share(number int) *share {
	return &share{of: m, number: number, revoked: make(chan struct{})}
}

func (s *share) Number() int              { return s.number }
func (s *share) Token() recipes.Token     { return recipes.Token(s.number) }
func (s *share) Revoked() <-chan struct{} { return s.revoked }

func (s *share) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *share) Release(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = recipes.ErrReleased
		s.of.released <- s.number
	}
	return nil
}

// sharing runs a script with the numbers of a member. The script has two pipes: it writes lines to
// told, and reads from ask until that is closed.
type sharing struct {
	*testing.T
	*sharesVerb
	*member
	dir   string
	lines *bufio.Reader // of told
	event chan string   // the tool's events, with the numbers
	ends  chan error
}

// events checks what the tool has reported next.
func (s *sharing) events(want ...string) {
	s.Helper()
	for _, want := range want {
		if got := <-s.event; got != want {
			s.Fatalf("event %q; want %q", got, want)
		}
	}
}

func (s *sharing) Write(line []byte) (int, error) {
	var event verb.Event
	err := json.Unmarshal(line, &event)
	s.event <- strings.TrimSpace(event.Event + " " + event.Shares)
	return len(line), err
}

func runShares(t *testing.T, hangup bool, script string) *sharing {
	s := &sharing{T: t, member: newMember(), dir: t.TempDir(), event: make(chan string, 1000), ends: make(chan error, 1)}
	for _, name := range []string{"told", "ask"} {
		must.Do(t, syscall.Mkfifo(filepath.Join(s.dir, name), 0o600))
	}
	told := must.Get(os.OpenFile(filepath.Join(s.dir, "told"), os.O_RDWR, 0))(t) // read-write, so that there is no end of file between two writers
	t.Cleanup(func() { _ = told.Close() })
	must.Do(t, told.SetReadDeadline(time.Now().Add(watchdog.Patience)))
	s.lines = bufio.NewReader(told)
	r, ctx := job.NewRelay(t.Context())
	t.Cleanup(r.Stop)
	s.sharesVerb = &sharesVerb{
		guard: guard{
			path: "/s", argv: []string{"sh", "-c", script, "sh", s.dir}, grace: time.Minute,
			t: &verb.Tool{JSON: true, Stderr: s}, program: "/bin/sh", relay: r,
		},
		hangup: hangup,
		file:   filepath.Join(s.dir, "file"), owned: make(map[recipes.Token]recipes.Share),
	}
	go func() { s.ends <- s.work(ctx, s.member) }()
	return s
}

// told waits for the next line.
func (s *sharing) told(want string) {
	s.Helper()
	if got := strings.TrimSpace(must.Get(s.lines.ReadString('\n'))(s)); got != want {
		s.Fatalf("the command wrote %q; want %q", got, want)
	}
}

// asked waits until the command reads from ask.
func (s *sharing) asked() io.Closer {
	s.Helper()
	return must.Get(os.OpenFile(filepath.Join(s.dir, "ask"), os.O_WRONLY, 0))(s)
}

// While the command ends, another member joins. The command is started again with the numbers that
// remain, and a number is given up only when no command works for it.
func TestTheCommandIsStartedWithTheLatestNumbers(t *testing.T) {
	s := runShares(t, false, `trap 'read x <$1/ask; exit 0' TERM; echo "$ZKRECIPES_SHARES" >$1/told; while :; do sleep 0.02; done`)
	all := []recipes.Share{s.share(1), s.share(2), s.share(3)}
	s.changes <- all
	s.told("1,2,3")
	close(all[2].(*share).revoked)
	s.changes <- all[:2]
	end := s.asked()
	close(all[1].(*share).revoked)
	select {
	case number := <-s.released:
		t.Errorf("%d is given up while the command runs", number)
	default:
	}
	s.changes <- []recipes.Share{all[0], s.share(5)} // a later list than the one with which the command was to start
	must.Do(t, end.Close())
	s.told("1,5")
	if got := []int{<-s.released, <-s.released}; !slices.Contains(got, 2) || !slices.Contains(got, 3) {
		t.Errorf("given up: %v; want 2 and 3", got)
	}
	five := s.owned[5]
	for range 2 { // the command has already got these
		s.changes <- []recipes.Share{all[0], five}
	}
	s.changes <- []recipes.Share{all[0], s.share(4), five}
	must.Do(t, s.asked().Close())
	s.told("1,4,5")
	_ = s.Leave(t.Context())
	must.Do(t, s.asked().Close())
	if code := exit.Code(<-s.ends, -1); code != exit.Lost {
		t.Errorf("exit code %d", code)
	}
	s.events("owns 1,2,3", "owns 1,5", "owns 1,4,5", "lost")
}

// While the command ends, the list becomes shorter, and then the member is lost.
func TestNoCommandIsStartedWithLostNumbers(t *testing.T) {
	s := runShares(t, false, `trap 'read x <$1/ask; exit 0' TERM; echo "$ZKRECIPES_SHARES" >$1/told; while :; do sleep 0.02; done`)
	all := []recipes.Share{s.share(1), s.share(2)}
	s.changes <- all
	s.told("1,2")
	s.changes <- all[:1]
	end := s.asked()
	_ = s.Leave(t.Context())
	must.Do(t, end.Close())
	if code := exit.Code(<-s.ends, -1); code != exit.Lost {
		t.Errorf("exit code %d", code)
	}
	s.events("owns 1,2", "lost")
}

// The command has started a process that is not killed with it.
func TestNumbersAreKeptForAProcessThatGoesOn(t *testing.T) {
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Skip("no setsid: a script cannot start a process with its own group")
	}
	s := runShares(t, false, setsid+` sh -c 'echo "$ZKRECIPES_SHARES" >$0/told; read x <$0/ask' $1 & wait`)
	s.grace = 0
	all := []recipes.Share{s.share(1), s.share(2)}
	s.changes <- all
	s.told("1,2")
	close(all[1].(*share).revoked)
	s.changes <- all[:1]
	s.events("owns 1,2", "killed", "left")
	if len(s.released) > 0 {
		t.Error("a number is given up while a process of the command runs")
	}
	must.Do(t, s.asked().Close())
	s.told("1")
	_ = s.Leave(t.Context())
	must.Do(t, s.asked().Close())
	<-s.ends
}

// With -hangup a number is given up after -grace, and is not kept after its end.
func TestSharesThatHaveEndedAreNotKept(t *testing.T) {
	s := runShares(t, true, `trap 'cat $ZKRECIPES_SHARES_FILE >$1/told' HUP; cat $ZKRECIPES_SHARES_FILE >$1/told; while :; do sleep 0.02; done`)
	s.grace = 0
	one := s.share(1)
	s.changes <- []recipes.Share{one}
	s.told("1")
	for number := range 20 {
		s.changes <- []recipes.Share{one, s.share(100 + number)}
		s.told(fmt.Sprint("1,", 100+number))
		s.changes <- []recipes.Share{one}
		s.told("1")
		if got := <-s.released; got != 100+number {
			t.Fatalf("%d is given up", got)
		}
	}
	_ = s.Leave(t.Context())
	<-s.ends
	if n := len(s.owned); n > 3 {
		t.Errorf("%d shares are kept", n)
	}
}

// A process that nohup has started ignores HUP, and a command that it starts would inherit that.
func TestACommandIsHungUpUnderNohup(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	s := runShares(t, true, `trap 'cat $ZKRECIPES_SHARES_FILE >$1/told' HUP; cat $ZKRECIPES_SHARES_FILE >$1/told; while :; do sleep 0.02; done`)
	s.changes <- []recipes.Share{s.share(1), s.share(2)}
	s.told("1,2")
	s.changes <- []recipes.Share{s.share(1)}
	s.told("1")
	_ = s.Leave(t.Context())
	<-s.ends
}

// If the numbers cannot be written, the file stays as it was. The command would not stop what it
// does for a number that moves, so it is ended.
func TestAFileOfNumbersIsNotCut(t *testing.T) {
	s := runShares(t, true, `trap 'echo hup >$1/told' HUP; trap 'exit 3' TERM; cat $ZKRECIPES_SHARES_FILE >$1/told; while :; do sleep 0.02; done`)
	all := []recipes.Share{s.share(1), s.share(1041)}
	s.changes <- all
	s.told("1,1041")
	moved := s.dir + "-moved" // nothing can be written beside the file any more
	must.Do(t, os.Rename(filepath.Dir(s.file), moved))
	s.changes <- all[:1]
	if code := exit.Code(<-s.ends, -1); code != exit.Own {
		t.Errorf("exit code %d", code)
	}
	if got := must.Get(os.ReadFile(filepath.Join(moved, filepath.Base(s.file))))(t); string(got) != "1,1041\n" {
		t.Errorf("the file has %q", got)
	}
	if len(s.released) != 2 {
		t.Errorf("%d numbers are given up", len(s.released))
	}
}
