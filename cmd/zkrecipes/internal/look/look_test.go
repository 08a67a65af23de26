package look

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestContenderIsKnownByItsGUID: a waiter and a holder have the same GUID, whatever the name of the
// path.
func TestContenderIsKnownByItsGUID(t *testing.T) {
	const id = "_c_0f8fad5b-d9cb-469f-a165-70867728950e"
	for _, znode := range []string{
		"/p/" + id + "-read-06-0000000001", "/p/" + id + "-reading-06-0000000001",
		"/may-read/or-write/" + id + "-write-06-0000000001", "/may-read/or-write/" + id + "-writing-06-0000000001",
	} {
		if got := guid(znode); got != id {
			t.Errorf("%s is known by %q", znode, got)
		}
	}
}

// TestTableIsDrawnInPlace: it replaces the previous output, only after a change, and never
// exceeds the terminal.
func TestTableIsDrawnInPlace(t *testing.T) {
	var terminal strings.Builder
	s := &screen{w: &terminal, columns: 10, rows: 4}
	for _, step := range []struct{ text, want string }{
		{"a\nb\n", "a\nb\n"},
		{"a\nb\n", ""},
		{"c\n", "\x1b[2A\x1b[Jc\n"},
		{"0123456789abc\n", "\x1b[1A\x1b[J012345678\n"},
		{"1\n2\n3\n4\n5\n", "\x1b[1A\x1b[J1\n2\n... and 3\n"},
		{"1\n2\n3\n", "\x1b[3A\x1b[J1\n2\n3\n"},
	} {
		terminal.Reset()
		if err := s.draw(func(w io.Writer) { fmt.Fprint(w, step.text) }); err != nil || terminal.String() != step.want {
			t.Errorf("%q is drawn as %q, want %q (%v)", step.text, terminal.String(), step.want, err)
		}
	}
}

// TestWaitQueueChanges: a contender waits, is granted under another name, is asked, and leaves.
func TestWaitQueueChanges(t *testing.T) {
	waits := recipes.Contender{Kind: recipes.KindPriorityLock, Mode: recipes.Writing, Znode: "/p/_c_g-write-50-1", SessionID: 1, Data: []byte("a b")}
	holds := waits
	holds.Znode, holds.Holds = "/p/_c_g-writing-50-2", true
	asked := holds
	asked.Revoked = true
	other := recipes.Contender{Kind: recipes.KindLock, Znode: "/p/_c_h-lock-3", SessionID: 2, Data: []byte("line\nfeed")}
	for _, tt := range []struct {
		before, now []recipes.Contender
		want        []string
	}{
		{nil, []recipes.Contender{waits}, []string{"waits priority-write:0 0x1 a b"}},
		{[]recipes.Contender{waits}, []recipes.Contender{waits}, nil},
		{[]recipes.Contender{waits}, []recipes.Contender{holds}, []string{"holds priority-write:0 0x1 a b"}},
		{[]recipes.Contender{holds}, []recipes.Contender{asked}, []string{"holds priority-write:0,asked 0x1 a b"}},
		{[]recipes.Contender{asked}, []recipes.Contender{other}, []string{"left priority-write:0,asked 0x1 a b", `waits lock 0x2 "line\nfeed"`}},
	} {
		var got []string
		for _, c := range lineChanges(tt.before, tt.now) {
			got = append(got, c.text())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// Doctor warns if the session timeout has fewer ticks than the proof of a grant needs.
func TestDoctorComparesTheTimeoutWithTheTick(t *testing.T) {
	const voter, observer = "clientPort=2181\ntickTime=2000\nminSessionTimeout=1000\npeerType=0\n", "tickTime=2000\npeerType=1\n"
	for _, test := range []struct {
		answer  string
		timeout time.Duration
		want    string // the status; "": no finding
		says    string
	}{
		{voter, 10 * time.Second, fine, "5 ticks of 2s; at least 2"},
		{voter, 4 * time.Second, fine, "2 ticks"},
		{voter, 3999 * time.Millisecond, warn, "at least 4s"},
		{observer, 8 * time.Second, fine, "observer, "},
		{observer, 7 * time.Second, warn, "at least 8s"},
		{"conf is not executed because it is not in the whitelist.\n", time.Second, "", ""},
		{"tickTime=many\n", time.Second, "", ""},
		{"", time.Second, "", ""},
	} {
		listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		asked := make(chan string, 1)
		go func() {
			c, err := listener.Accept()
			if err != nil {
				asked <- err.Error()
				return
			}
			defer c.Close()
			word := make([]byte, 4)
			_, _ = io.ReadFull(c, word)
			_, _ = io.WriteString(c, test.answer)
			asked <- string(word)
		}()
		v := &doctorVerb{}
		v.ticks(t.Context(), nil, listener.Addr().String(), test.timeout)
		if word := <-asked; word != "conf" {
			t.Errorf("asked %q", word)
		}
		listener.Close()
		switch {
		case test.want == "" && len(v.findings) == 0:
		case len(v.findings) != 1 || v.findings[0].Status != test.want ||
			!strings.Contains(v.findings[0].Detail+v.findings[0].Advice, test.says):
			t.Errorf("%q with a timeout of %v: %+v", test.answer, test.timeout, v.findings)
		}
	}
}

// TestUpgradePassesOverASilentProcess: the kernel accepts a connection to a process that was stopped.
func TestUpgradePassesOverASilentProcess(t *testing.T) {
	if !verb.ControlSupported {
		t.Skip("there are no such sockets")
	}
	temp := must.Get(os.MkdirTemp("/tmp", "upgrade-"))(t) // the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	t.Setenv("TMPDIR", temp)
	t.Setenv("XDG_RUNTIME_DIR", "/none")
	sockets := filepath.Join(temp, fmt.Sprint("zkrecipes-", os.Geteuid()))
	must.Do(t, os.Mkdir(sockets, 0o700))
	stopped := must.Get(net.Listen("unix", filepath.Join(sockets, "7-1.sock")))(t) // accepts nothing
	defer stopped.Close()
	var said strings.Builder
	v := &upgradeVerb{pids: []int{7, 8}, timeout: 50 * time.Millisecond}
	err := v.Run(t.Context(), &verb.Tool{Stderr: &said})
	if exit.Code(err, exit.OK) != exit.Failed || !strings.HasPrefix(said.String(), "zkrecipes: process 7: no answer within 50ms: ") || !strings.Contains(said.String(), "\nzkrecipes: process 8: ") {
		t.Errorf("%v: %s", err, said.String())
	}
}
