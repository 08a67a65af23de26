package zookeeper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// fault is injected at one request of a call. The zero fault injects nothing.
type fault struct {
	name        string
	first, then zkserver.Fault // the server's fault at the request, and at the next one
	cancels     bool           // the caller cancels when the server receives the request
	slow        bool           // the answer waits until all goroutines wait
	kills       bool           // the plugin is killed when the server receives the request
	twice       bool           // the next plugin is killed too, at one of its first requests
	later       bool           // the caller cancels only at one of the first requests of the next plugin
	ends        bool           // the end of the connection is the end of the session, for its client
	may         []error        // the errors that the call may return; it may also succeed
}

var faults = []fault{
	{name: "throttled", first: zkserver.Fault{Throttle: true}, may: []error{recipes.ErrThrottled}},
	{name: "throttled twice", first: zkserver.Fault{Throttle: true}, then: zkserver.Fault{Throttle: true}, may: []error{recipes.ErrThrottled}},
	{name: "cancelled before the answer", cancels: true, slow: true, may: []error{context.Canceled}},
	{name: "cancelled and throttled", first: zkserver.Fault{Throttle: true}, cancels: true, slow: true, may: []error{context.Canceled}},
	{name: "cancelled at the request", cancels: true, may: []error{context.Canceled}},
	{name: "connection lost before the request", first: zkserver.Fault{CloseBefore: true}},
	{name: "reply lost after the commit", first: zkserver.Fault{DropReply: true}},
	{name: "reply lost after the commit, and the connection before the next request", first: zkserver.Fault{DropReply: true}, then: zkserver.Fault{CloseBefore: true}},
	{name: "reply lost after the commit, and the next request throttled", first: zkserver.Fault{DropReply: true}, then: zkserver.Fault{Throttle: true}, may: []error{recipes.ErrThrottled}},
	{name: "connection lost after the reply", first: zkserver.Fault{CloseAfter: true}},
	{name: "session expired before the request", first: zkserver.Fault{ExpireBefore: true}, may: []error{recipes.ErrSessionLost}},
	{name: "session expired after the commit", first: zkserver.Fault{ExpireAfter: true}, may: []error{recipes.ErrSessionLost}},
	{name: "cancelled, and the connection lost before the request", first: zkserver.Fault{CloseBefore: true}, cancels: true, may: []error{context.Canceled}},
	{name: "cancelled, and the reply lost after the commit", first: zkserver.Fault{DropReply: true}, cancels: true, may: []error{context.Canceled}},
}

// deaths are the faults of a victim whose session is open through a plugin. The next plugin resumes
// the session, so no call fails, except that the outcome of a write may be unknown.
var deaths = []fault{
	{name: "plugin killed before the request", first: zkserver.Fault{CloseBefore: true}, kills: true},
	{name: "plugin killed after the commit", first: zkserver.Fault{DropReply: true}, kills: true},
	{name: "two plugins killed", first: zkserver.Fault{CloseBefore: true}, kills: true, twice: true},
	{name: "plugin killed, and cancelled while the next one resumes", first: zkserver.Fault{CloseBefore: true}, cancels: true, kills: true, later: true, may: []error{context.Canceled}},
	{name: "cancelled, and the plugin killed before the request", first: zkserver.Fault{CloseBefore: true}, cancels: true, kills: true, may: []error{context.Canceled}},
	{name: "cancelled, and the plugin killed after the commit", first: zkserver.Fault{DropReply: true}, cancels: true, kills: true, may: []error{context.Canceled}},
}

func (f fault) expires() bool { return f.ends || f.first.ExpireBefore || f.first.ExpireAfter }

// answered reports whether every request gets an answer. Then the call must return a known
// outcome.
func (f fault) answered() bool {
	return !f.expires() && !f.first.CloseBefore && !f.first.DropReply && !f.first.CloseAfter
}

// allows reports whether a call that met the fault may return err.
func (f fault) allows(err error) bool {
	return err == nil || slices.ContainsFunc(f.may, func(e error) bool { return errors.Is(err, e) })
}

// strike injects the fault at the session's request number at, counted from 1. With 0 it
// injects none. It returns the count of the session's requests.
func (f fault) strike(srv *zkserver.Server, s recipes.Session, at int64, cancel, kill func()) *atomic.Int64 {
	requests, id := new(atomic.Int64), s.ID()
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != id {
			return zkserver.Fault{}
		}
		n := requests.Add(1)
		if next := n == at+1+at%4; at > 0 && next && f.twice {
			kill()
			return f.first
		} else if at > 0 && next && f.later {
			cancel()
		}
		if at > 0 && n == at+1 {
			return f.then
		}
		if n != at {
			return zkserver.Fault{}
		}
		first := f.first
		if f.cancels && !f.later {
			cancel()
		}
		if f.kills {
			kill()
		}
		if f.slow { // virtual time passes only when all goroutines wait
			answer := make(chan struct{})
			first.Hold = answer
			time.AfterFunc(time.Millisecond, func() { close(answer) })
		}
		return first
	})
	return requests
}

// thorough runs all cases of each matrix. The normal run takes a part of them.
var thorough = testall.On()

// sweep calls run without a fault, and then with faults at each of its requests. If not
// thorough, it injects only some of the faults. At each request and in each test it begins with
// a different one. run returns how many requests were sent. cases counts the runs with a fault.
func sweep(t *testing.T, faults []fault, one int64, cases *atomic.Int64, run func(t *testing.T, f fault, at int64) (requests int64)) {
	requests := run(t, fault{}, 0)
	if t.Failed() {
		return
	}
	if requests == 0 {
		t.Fatal("no request was sent")
	}
	first := int64(crc32.ChecksumIEEE([]byte(path.Base(t.Name())))) // without the part
	for at := int64(1); at <= requests; at++ {
		for i, f := range faults {
			if !thorough && (first+int64(i)+at)%one != 0 {
				continue
			}
			t.Run(fmt.Sprintf("request %d %s", at, f.name), func(t *testing.T) {
				cases.Add(1)
				run(t, f, at)
			})
		}
	}
}

// An operation that meets a fault succeeds, or its error says what has happened. A failed
// operation leaves nothing behind that others wait for, and can be repeated. No call hangs,
// and nothing is granted twice.
func TestEveryFaultAtEveryRequest(t *testing.T) { everyFault(t, onStage, faults, 4) }

// An operation survives the death of the plugin of its session. TestEveryFaultAtEveryRequest says
// what that means.
func TestADeathOfThePluginAtEveryRequest(t *testing.T) { everyFault(t, onPluginStage, deaths, 12) }

func everyFault(t *testing.T, on func(*testing.T, func(*stage)), faults []fault, one int64) {
	var cases atomic.Int64
	t.Run("operations", func(t *testing.T) {
		// A parallel test of each operation would be a goroutine, whose stack running reads.
		for part, parts := 0, runtime.GOMAXPROCS(0); part < parts; part++ {
			t.Run(strconv.Itoa(part), func(t *testing.T) {
				t.Parallel()
				for all, i := operations(), part; i < len(all); i += parts {
					o := all[i]
					t.Run(o.name, func(t *testing.T) {
						var clean run
						sweep(t, faults, one, &cases, func(t *testing.T, f fault, at int64) (requests int64) {
							on(t, func(s *stage) { requests = o.meets(s, f, at, &clean) })
							return requests
						})
					})
				}
			})
		}
	})
	fmt.Printf("faults: %d cases\n", cases.Load())
}

// run is the result of one run, and what it has left behind.
type run struct {
	answer                    string
	watches, goroutines, left int
}

// meets runs the operation with the fault at that request, and repeats it if it has failed.
// clean is the result of a run without a fault.
func (o operation) meets(s *stage, f fault, at int64, clean *run) (requests int64) {
	s.expires = f.expires()
	do := o.prepare(s)
	calm()
	owned := s.owned()
	acting, cancel := context.WithCancel(s.ctx)
	defer cancel()
	sent := f.strike(s.srv, s.victim, at, cancel, s.kill)
	err := s.acts(acting, do.act, do.happen)
	requests = sent.Load()
	if f.kills {
		s.resumes()
	}
	calm()
	s.srv.SetFault(nil) // before time passes: a beat of the session would meet a fault that is still due
	if f.ends {
		time.Sleep(stageTimeout) // the server expires the session, which no client can close
		calm()
	}
	cancel()
	if at == 0 && err != nil {
		s.Fatalf("without a fault: %v", err)
	}
	happened := do.happened != nil && do.happened()
	do.judge(s, f, err, happened)
	if f.kills && err == nil { // once more, after the call
		s.kill()
		s.resumes()
		calm()
		if happened && !do.happened() {
			s.Error("the next plugin has undone act")
		}
	}
	if err != nil && !happened {
		for _, path := range s.owned() {
			if !slices.Contains(owned, path) && !strings.HasSuffix(path, "/ready") { // see left
				s.Errorf("left behind: %s", path)
			}
		}
	}
	read := func() {
		switch {
		case do.answer == nil || err != nil:
		case at == 0:
			clean.answer = do.answer()
		case do.answer() != clean.answer:
			s.Errorf("the answer is %s; want %s", do.answer(), clean.answer)
		}
	}
	read()
	if err != nil && do.failed != nil {
		s.fails("after a failure", do.failed())
	}
	if (err != nil || do.answer != nil) && !s.lost() {
		err = do.again(s, happened)
		read()
	}
	if err == nil && do.end != nil && !s.lost() {
		s.fails("at its end", do.end())
	}
	if do.after != nil {
		s.fails("then another", do.after())
	}
	s.started.Wait()
	if s.lost() {
		return requests
	}
	calm()
	if n := s.srv.CreationWatches(); n > 0 && !s.like.Keeper() { // a Keeper may not know how to remove one
		s.Errorf("%d watches remain on znodes that do not exist", n)
	}
	now := run{clean.answer, s.srv.Watches(), running(), s.left()}
	if at == 0 {
		*clean = now
	}
	if f.cancels || !f.answered() || do.happen != nil {
		now.watches-- // one watch may remain on a znode that exists: the next wait uses it
	}
	if f.kills {
		now.goroutines-- // the goroutine that renews the proof of a resumed session, which counts as one that has held something
		now.watches--    // the next plugin watches what it has resumed
	}
	now.compare(s, *clean)
	return requests
}

// resumes waits until a plugin has resumed the victim's session.
func (s *stage) resumes() {
	s.Helper()
	_, err := s.victim.Contenders(s.ctx, "/other") // a call waits for the next plugin
	s.fails("the next plugin", err)
}

// fails reports an error of a step that must not fail.
func (s *stage) fails(what string, err error) {
	s.Helper()
	if err != nil {
		s.Errorf("%s: %v", what, err)
	}
}

// acts calls act. If there is an event to wait for, it calls happen when act waits.
func (s *stage) acts(ctx context.Context, act func(context.Context) error, happen func() error) error {
	if happen == nil {
		return act(ctx)
	}
	acted := zktest.GoDo(ctx, act)
	synctest.Wait()
	if s.killed.Load() { // in TestAnAwaitedEventIsNoticedWheneverItHappens the event happens without a plugin
		s.resumes()
	}
	s.fails("the awaited event", happen())
	return <-acted
}

// judge compares the error that the caller got with the state of the server.
func (do doing) judge(s *stage, f fault, err error, happened bool) {
	s.Helper()
	if err == nil {
		if do.happened != nil && !happened && !s.lost() {
			s.Error("no error, but act was not carried out")
		}
		return
	}
	unknown := errors.Is(err, recipes.ErrUnknownOutcome)
	if !f.allows(err) && (!unknown || f.answered()) {
		s.Errorf("the error is %v", err)
	}
	for _, never := range []error{recipes.ErrNotHeld, recipes.ErrSessionLost, recipes.ErrUnavailable, recipes.ErrInternal} {
		if f.answered() && errors.Is(err, never) {
			s.Errorf("the session lives and keeps its grants, but the error is %v", err)
		}
	}
	switch {
	case unknown && f.answered() && !f.cancels && !happened: // if it happened, its result may have been unreadable
		s.Errorf("every request was answered, but the error is %v", err)
	case unknown && do.happened == nil && !(f.kills && f.cancels):
		s.Errorf("no outcome can be unknown, but the error is %v", err)
	case !unknown && happened && !do.harmless:
		s.Errorf("act was carried out, but the error is %v", err)
	}
}

// again repeats a failed act without a fault.
func (do doing) again(s *stage, happened bool) error {
	s.Helper()
	if happened && do.once {
		return nil
	}
	var happen func() error
	if do.failed != nil {
		happen = do.happen
	}
	err := s.acts(s.ctx, do.act, happen)
	switch {
	case do.stays && (errors.Is(err, recipes.ErrThrottled) || s.host != nil && errors.Is(err, recipes.ErrUnknownOutcome)):
	case happened && do.refused != nil:
		if !errors.Is(err, do.refused) {
			s.Errorf("again: %v; want %v", err, do.refused)
		}
		return do.refused
	default:
		s.fails("again", err)
	}
	return err
}

// left counts the znodes, without the ready of double barriers: the next member deletes an
// old one.
func (s *stage) left() (n int) {
	for _, node := range s.srv.Tree() {
		if !strings.HasSuffix(node.Path, "/ready") {
			n++
		}
	}
	return n
}

// compare checks that no more is left than after a run without a fault.
func (r run) compare(s *stage, clean run) {
	s.Helper()
	if r.watches > clean.watches || r.goroutines > clean.goroutines || r.left > clean.left {
		s.Errorf("%d watches, %d goroutines, %d znodes; without a fault: %d, %d, %d", r.watches, r.goroutines, r.left, clean.watches, clean.goroutines, clean.left)
	}
}

// stacks is the buffer for the stacks of all goroutines.
var stacks struct {
	sync.Mutex
	buffer []byte
}

// idle is the top of the stack of a goroutine that carry keeps for the next call.
const idle = "]:\ngithub.com/zkrecipes/zkrecipes/internal/rpc/carry.(*workers).work("

// running counts the goroutines of the caller's bubble, without idle ones.
func running() int {
	stacks.Lock()
	defer stacks.Unlock()
	n := runtime.Stack(stacks.buffer, true)
	for n == len(stacks.buffer) { // the buffer is too small
		stacks.buffer = make([]byte, 2*n+1<<17)
		n = runtime.Stack(stacks.buffer, true)
	}
	all := stacks.buffer[:n]
	header, _, _ := bytes.Cut(all, []byte("\n"))
	_, bubble, _ := strings.Cut(string(header), "synctest bubble ")
	bubble = "synctest bubble " + bubble
	return bytes.Count(all, []byte(bubble)) - bytes.Count(all, []byte(strings.TrimSuffix(bubble, "]:")+idle))
}
