package top

import (
	"context"
	"errors"
	"fmt"
	"maps"
	gopath "path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// tree is a client whose servers have these wait queues. The queue of a path is a string such as
// "1h 2 3": the sessions of its contenders, of which 1 holds. The sequence number and the token of
// a contender are those of its session.
type tree struct {
	queues   map[string]string
	kind     map[string]recipes.Kind // KindLock if there is none
	children map[string][]string     // more names
	created  map[string]int64        // czxids by path and session, where they differ from the session's number
	fails    map[string]error
	requests []string
	between  func() // runs before each reading of contenders
	again    error  // the error of readings of contenders
}

func (t *tree) ID() int64              { return 99 }
func (t *tree) Timeout() time.Duration { return 9 * time.Second }

func (t *tree) Children(_ context.Context, path string) ([]string, error) {
	t.requests = append(t.requests, "list "+path)
	names := slices.Clone(t.children[path])
	exists := names != nil
	for p := range t.queues {
		rest, below := strings.CutPrefix(p, strings.TrimSuffix(path, "/")+"/")
		if below {
			names = append(names, strings.Split(rest, "/")[0])
		}
		exists = exists || below || p == path
	}
	for _, c := range t.contenders(path) {
		names = append(names, gopath.Base(c.Znode))
	}
	slices.Sort(names)
	if err := t.fails[path]; err != nil || !exists {
		return nil, errorOr(err, recipes.ErrNoNode)
	}
	return slices.Compact(names), nil
}

func errorOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func (t *tree) Contenders(_ context.Context, path string, _ ...recipes.Kind) (recipes.Lines, error) {
	if t.between != nil {
		t.between()
	}
	t.requests = append(t.requests, "read "+path)
	if t.again != nil {
		return recipes.Lines{}, t.again
	}
	return recipes.Lines{Contenders: t.contenders(path)}, nil
}

func (t *tree) contenders(path string) (all []recipes.Contender) {
	for _, word := range strings.Fields(t.queues[path]) {
		c := recipes.Contender{Kind: t.kind[path], Dialect: recipes.ZooKeeper}
		if c.Kind == "" {
			c.Kind = recipes.KindLock
		}
		_, err := fmt.Sscanf(word, "%d", &c.SessionID)
		if err != nil {
			panic(err)
		}
		c.Holds = strings.Contains(word, "h")
		if strings.Contains(word, "r") {
			c.Mode = recipes.Reading
		}
		c.Sequence = int32(c.SessionID)
		c.Token = recipes.Token(c.SessionID)
		if other, ok := t.created[fmt.Sprint(path, " ", c.SessionID)]; ok {
			c.Token = recipes.Token(other)
		}
		c.Since = time.UnixMilli(c.SessionID)
		c.Znode = fmt.Sprintf("%s/lock-%010d", path, c.Sequence)
		all = append(all, c)
	}
	return all
}

// rounds runs a round, and returns its last snapshot.
func rounds(t *testing.T, s *survey, c client) *snapshot {
	t.Helper()
	var last *snapshot
	must.Do(t, s.round(t.Context(), c, func(n *snapshot) error { last = n; return nil }))
	if !last.whole {
		t.Fatal("the last snapshot of a round is not whole")
	}
	return last
}

// TestALineWithoutChangesCostsOneRequest: a line that has changed is read.
func TestALineWithoutChangesCostsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tree{queues: map[string]string{"/r/a": "1h 2", "/r/b": "3h", "/r/s": "4h"}, kind: map[string]recipes.Kind{"/r/s": recipes.KindSharedLock}}
		s := newSurvey("/r", asker{})
		rounds(t, s, c)
		c.requests = nil
		time.Sleep(time.Second)
		n := rounds(t, s, c)
		// A reader that was a writer has the same name.
		if got, want := strings.Join(c.requests, ", "), "list /r, list /r/a, list /r/b, list /r/s, read /r/s"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
		if l := n.lines[0]; l.path != "/r/a" || len(l.holders()) != 1 || !l.read.Equal(time.Now()) {
			t.Errorf("%+v", l)
		}
		c.queues["/r/a"] = "2h"
		c.requests = nil
		n = rounds(t, s, c)
		if !slices.Contains(c.requests, "read /r/a") || n.lines[0].holders()[0].SessionID != 2 {
			t.Errorf("%q: %+v", c.requests, n.lines[0])
		}
		time.Sleep(reread)
		c.requests = nil
		rounds(t, s, c)
		if !slices.Contains(c.requests, "read /r/b") { // data can change
			t.Errorf("%q", c.requests)
		}
	})
}

// TestOnlyPathsAreSearched: the znodes of recipes are not searched.
func TestOnlyPathsAreSearched(t *testing.T) {
	c := &tree{
		queues: map[string]string{"/r/a": "1h", "/r/a/below": "2h", "/r/secret/x": "3h"},
		children: map[string][]string{
			"/r":   {"qn-0000000001", "_c_0f8fad5b-d9cb-469f-a165-70867728950e-member", "acks", "k", "k-__lock__", "4915112345", "zookeeper", "gone"},
			"/r/k": {}, "/r/4915112345": {}, "/r/zookeeper": {},
		},
		fails: map[string]error{"/r/secret": recipes.ErrAccessDenied},
	}
	n := rounds(t, newSurvey("/r", asker{}), c)
	got := slices.DeleteFunc(c.requests, func(r string) bool { return strings.HasPrefix(r, "read") })
	slices.Sort(got)
	want := []string{"list /r", "list /r/4915112345", "list /r/a", "list /r/a/below", "list /r/gone", "list /r/k", "list /r/secret", "list /r/zookeeper"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if n.unreadable != 1 || !strings.Contains(n.failed.Error(), "/r/secret") || len(n.lines) != 2 {
		t.Errorf("%d lines, %d unreadable: %v", len(n.lines), n.unreadable, n.failed)
	}
}

// lineAt returns the reading of a wait queue.
func lineAt(at time.Time, kind recipes.Kind, contenders string) *line {
	c := &tree{queues: map[string]string{"/l": contenders}, kind: map[string]recipes.Kind{"/l": kind}}
	all := linesOf("/l", recipes.Lines{Contenders: c.contenders("/l")}, at)
	if len(all) == 0 {
		return &line{key: key{"/l", kind, recipes.ZooKeeper}, read: at}
	}
	return all[0]
}

// TestGrantsASecond: grants are counted by sequence numbers, even if the holders in between were
// not seen.
func TestGrantsASecond(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		kind     recipes.Kind
		readings []string // ten seconds apart
		rate     float64
	}{
		{recipes.KindLock, []string{"1h 2", "1h 2"}, 0},
		{recipes.KindLock, []string{"1h 2", "21h 22"}, 2},
		{recipes.KindLock, []string{"21h", "5h"}, 0.1},                       // the path was created again
		{recipes.KindPriorityLock, []string{"1h", "21h"}, 0.1},               // numbers of a priority lock also count requests
		{recipes.KindLock, []string{"2147483647h", "-2147483639h"}, 1},       // the numbers wrap
		{recipes.KindSemaphore, []string{"1h 2h 3", "2h 3h", "9h 10h"}, 0.4}, // the last of the holders
		{recipes.KindLock, []string{"1h", "41h", "41h", "41h", "41h"}, 0},    // only the last 30 seconds count
		{recipes.KindLock, []string{"1h", "41h", "41h", "41h"}, 40. / 30},
	} {
		var h history
		var last *line
		for i, r := range tt.readings {
			last = lineAt(start.Add(time.Duration(i)*10*time.Second), tt.kind, r)
			h.add(last)
			if i == 0 && last.rated {
				t.Errorf("%v: a rate after one reading", tt)
			}
		}
		if !last.rated || fmt.Sprintf("%.3f", last.rate) != fmt.Sprintf("%.3f", tt.rate) {
			t.Errorf("%s %q: %v grants a second; want %v", tt.kind, tt.readings, last.rate, tt.rate)
		}
	}
}

// TestHeldIsCountedFromTheReadingBeforeTheGrant: if the holder joined later than that, from its
// joining.
func TestHeldIsCountedFromTheReadingBeforeTheGrant(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	var h history
	since := func(after time.Duration, contenders string) time.Time {
		l := lineAt(start.Add(after), recipes.KindLock, contenders)
		h.add(l)
		return l.since[placeOf(l.holders()[0])]
	}
	if got := since(0, "1h 2"); !got.Equal(time.UnixMilli(1)) {
		t.Errorf("the first holder since %v", got)
	}
	if got := since(time.Second, "1h 2"); !got.Equal(time.UnixMilli(1)) {
		t.Errorf("the same holder since %v", got)
	}
	for after := range 3 {
		if got := since(time.Duration(2+after)*time.Second, "2h"); !got.Equal(start.Add(time.Second)) {
			t.Errorf("the second holder since %v", got)
		}
	}
	if n, oldest := lineAt(start, recipes.KindLock, "5h 7 6").waiters(); n != 2 || !oldest.Equal(time.UnixMilli(6)) {
		t.Errorf("%d waiters, the oldest since %v", n, oldest)
	}
}

// TestDeadlocks: a deadlock is a cycle of the wait-for graph that two readings show.
func TestDeadlocks(t *testing.T) {
	for name, tt := range map[string]struct {
		queues  map[string]string
		kind    map[string]recipes.Kind
		between func(*tree) // the two readings
		want    string
	}{
		"two sessions":              {queues: map[string]string{"/x": "1h 2", "/y": "2h 1"}, want: "possible deadlock: session 0x1 holds /x and waits for /y; session 0x2 holds /y and waits for /x"},
		"three sessions":            {queues: map[string]string{"/x": "1h 2 9", "/y": "2h 8 3", "/z": "3h 1"}, want: "possible deadlock: session 0x1 holds /x and waits for /z; session 0x3 holds /z and waits for /y; session 0x2 holds /y and waits for /x"},
		"two cycles":                {queues: map[string]string{"/x": "1h 2", "/y": "2h 1", "/v": "3h 4", "/w": "4h 3"}, want: "possible deadlock: session 0x1 holds /x and waits for /y; session 0x2 holds /y and waits for /x, possible deadlock: session 0x3 holds /v and waits for /w; session 0x4 holds /w and waits for /v"},
		"a chain":                   {queues: map[string]string{"/x": "1h 2", "/y": "2h 3"}},
		"one session":               {queues: map[string]string{"/x": "1h 1"}},
		"behind a waiter":           {queues: map[string]string{"/x": "9h 1 2", "/y": "2h 1"}},
		"an election":               {queues: map[string]string{"/x": "1h 2", "/y": "2h 1"}, kind: map[string]recipes.Kind{"/x": recipes.KindElection}},
		"two permits":               {queues: map[string]string{"/x": "1h 9h 2", "/y": "2h 1"}, kind: map[string]recipes.Kind{"/x": recipes.KindSemaphore}},
		"one permit":                {queues: map[string]string{"/x": "1h 2", "/y": "2h 1"}, kind: map[string]recipes.Kind{"/x": recipes.KindSemaphore}, want: "possible deadlock: session 0x1 holds /x and waits for /y; session 0x2 holds /y and waits for /x"},
		"readers":                   {queues: map[string]string{"/x": "1hr 2r", "/y": "2h 1"}, kind: map[string]recipes.Kind{"/x": recipes.KindSharedLock}},
		"a persistent znode":        {queues: map[string]string{"/x": "0h 2", "/y": "2h 0"}},
		"seen only once":            {queues: map[string]string{"/x": "1h 2", "/y": "2h 1"}, between: func(c *tree) { c.queues["/y"] = "1h" }},
		"a waiter of another czxid": {queues: map[string]string{"/x": "1h 2", "/y": "2h 1"}, between: func(c *tree) { c.created = map[string]int64{"/y 1": 77} }},
		"a holder of another czxid": {queues: map[string]string{"/x": "1h 2", "/y": "2h 1"}, between: func(c *tree) { c.created = map[string]int64{"/x 1": 77} }},
	} {
		c := &tree{queues: maps.Clone(tt.queues), kind: tt.kind}
		reads := 0
		c.between = func() {
			if reads++; reads == 1+len(tt.queues)+1 && tt.between != nil { // the root and each line were read
				tt.between(c)
			}
		}
		var got []string
		for _, found := range rounds(t, newSurvey("/", asker{}), c).cycles {
			got = append(got, found.String())
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %q; want %q", name, got, tt.want)
		}
		if tt.between != nil && reads <= 1+len(tt.queues) {
			t.Errorf("%s: the lines were not read again", name)
		}
	}
}

// TestADeadlockThatCannotBeReadAgainIsNotShown: the other wait queues are still shown.
func TestADeadlockThatCannotBeReadAgainIsNotShown(t *testing.T) {
	for _, fails := range []error{recipes.ErrNoNode, errors.New("no permission"), recipes.ErrSessionLost} {
		c := &tree{queues: map[string]string{"/r/a": "1h 2", "/r/b": "2h 1"}}
		reads := 0
		c.between = func() {
			if reads++; reads > 3 { // the root and both lines were read
				c.again = fails
			}
		}
		var last *snapshot
		err := newSurvey("/r", asker{}).round(t.Context(), c, func(n *snapshot) error { last = n; return nil })
		if errors.Is(fails, recipes.ErrSessionLost) {
			if !errors.Is(err, fails) {
				t.Errorf("%v: %v", fails, err)
			}
		} else if err != nil || reads != 5 || len(last.lines) != 2 || len(last.cycles) != 0 {
			t.Errorf("%v: %v after %d reads: %+v", fails, err, reads, last)
		}
	}
}
