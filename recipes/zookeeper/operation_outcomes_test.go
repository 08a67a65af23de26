package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The window: a write gets no answer because the connection is lost, and the
// session is lost, or the caller's context ends, a moment later. Whoever made the
// call has to be told that, and, where it is so, that the outcome is unknown.
//
// A moment is a look of the recipe at its context. So each operation is done many times:
// for each write that it sends, carried out or not, and for each look that follows that
// write. The end comes at that look. The time is virtual.

// lateEnd is a context during which something ends at a look at it.
type lateEnd struct {
	context.Context
	looks atomic.Int32 // at Err since the fault; far below 0 before it
	at    int32
	end   func()
	ended atomic.Bool
}

const beforeFault = -1 << 20

func (c *lateEnd) Err() error {
	if c.looks.Add(1) == c.at {
		c.ended.Store(true) // before the call can return because of it
		c.end()
	}
	return c.Context.Err()
}

// moment is one case of an operation.
type moment struct {
	write   int64 // the write that gets no answer; 0: none
	done    bool  // it is carried out all the same
	expires bool  // the session; or else the call is cancelled
	look    int32
}

func (m moment) String() string {
	return fmt.Sprintf("write %d, carried out: %v, session expires: %v, look %d", m.write, m.done, m.expires, m.look)
}

// Operations that wait for others, or only read, are left to the other techniques.
func TestAnUnknownOutcomeIsReturnedWithTheEnd(t *testing.T) {
	var cases atomic.Int64
	t.Run("operations", func(t *testing.T) {
		methods := map[string]bool{}
		for _, o := range operations() {
			method, _, _ := strings.Cut(o.name, ",")
			all := thorough || !methods[method]
			methods[method] = true
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				o.sweepMoments(t, &cases, all)
			})
		}
	})
	fmt.Printf("outcomes: %d cases\n", cases.Load())
}

// sweepMoments does it at all moments. Where nothing can be unknown, the variants of a
// method differ little: they are left out unless all are wanted.
func (o operation) sweepMoments(t *testing.T, cases *atomic.Int64, all bool) {
	windows := 0
	for write := int64(1); ; write++ {
		for _, done := range []bool{false, true} {
			for _, expires := range []bool{false, true} {
				for look := int32(1); ; look++ {
					do, writes, ended := o.endsAt(t, moment{write, done, expires, look})
					cases.Add(1)
					if writes < write || !all && do.happened == nil && do.lost == nil {
						if write > 1 && windows == 0 && do.happened != nil && !do.harmless {
							t.Error("in no case something ended")
						}
						return
					}
					if !ended {
						break
					}
					windows++
				}
			}
		}
	}
}

// endsAt does it at one moment and returns how many writes were sent, and whether
// the end came.
func (o operation) endsAt(t *testing.T, m moment) (do doing, writes int64, ended bool) {
	onStage(t, func(s *stage) {
		do = o.prepare(s)
		if do.happen != nil || do.answer != nil {
			return
		}
		inner, cancel := context.WithCancel(s.ctx)
		defer cancel()
		ctx := &lateEnd{Context: inner, at: m.look}
		ctx.looks.Store(beforeFault)
		ctx.end = func() {
			if m.expires {
				s.srv.ExpireSession(s.victim.ID())
				s.refuse.Store(false)
				<-s.victim.Done() // of which the next connection tells
			} else {
				cancel()
			}
		}
		var sent atomic.Int64
		s.srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			switch r.Op {
			case zkserver.OpCreate, zkserver.OpCreate2, zkserver.OpDelete, zkserver.OpSetData, zkserver.OpMulti:
			default:
				return zkserver.Fault{}
			}
			if r.SessionID != s.victim.ID() || sent.Add(1) != m.write {
				return zkserver.Fault{}
			}
			s.refuse.Store(m.expires) // or the session would know too early
			ctx.looks.Store(0)
			return zkserver.Fault{CloseBefore: !m.done, DropReply: m.done}
		})
		err := do.act(ctx)
		writes, ended = sent.Load(), ctx.ended.Load()
		s.refuse.Store(false)
		s.srv.SetFault(nil)
		lost := s.lost()
		// Until the connection has ended or is back: go-zookeeper, told to close
		// twice, waits for itself in a way that holds up virtual time.
		synctest.Wait()
		// What was sent before a session ends is carried out before that.
		s.victim.Close(context.Background())
		s.started.Wait()
		do.judgeEnd(s, m, err, ended, lost)
		s.other.Close(context.Background())
	})
	return do, writes, ended
}

// judgeEnd compares what the caller was told with what is so.
func (do doing) judgeEnd(s *stage, m moment, err error, ended, lost bool) {
	if err == nil {
		return
	}
	unknown := errors.Is(err, recipes.ErrUnknownOutcome)
	var want []error
	switch {
	case do.single && unknown:
	case ended && !m.expires:
		want = []error{context.Canceled}
	case lost:
		want = append([]error{recipes.ErrSessionLost}, do.lost...)
	}
	for _, w := range want {
		if !errors.Is(err, w) {
			s.Errorf("%v: the error is %v; want %v", m, err, w)
		}
	}
	switch {
	case len(want) == 0 && !unknown:
		s.Errorf("%v: nothing has ended, and the error is %v", m, err)
	case do.happened == nil && unknown:
		s.Errorf("%v: the error is %v, of which nothing is unknown to the caller", m, err)
	case do.happened != nil && !unknown && !do.harmless && do.happened():
		s.Errorf("%v: it has happened, and the error is %v", m, err)
	}
}
