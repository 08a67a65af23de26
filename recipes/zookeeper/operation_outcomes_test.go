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

// These tests are about one window. The connection is lost, so a write gets no answer. A
// moment later, the session is lost or the caller's context ends. The error must say so, and
// must say that the outcome is unknown if it is.
//
// The moments are the recipe's calls of its context's Err. So each operation runs many times:
// for each write that it sends, carried out or not, and for each call of Err after that write. The
// session or the context ends at that call. The time is virtual.

// lateEnd is a context that calls end at one of the calls of Err.
type lateEnd struct {
	context.Context
	looks atomic.Int32 // calls of Err since the fault; far below 0 before it
	at    int32
	end   func()
	ended atomic.Bool
}

const beforeFault = -1 << 20

func (c *lateEnd) Err() error {
	if c.looks.Add(1) == c.at {
		c.ended.Store(true) // set first, because end makes the operation return
		c.end()
	}
	return c.Context.Err()
}

// moment is one case of an operation.
type moment struct {
	write   int64 // the number of the write that gets no answer
	done    bool  // the server still carries the write out
	expires bool  // the session expires; otherwise the call is cancelled
	look    int32 // the number of the call of Err, counted from the write
}

func (m moment) String() string {
	return fmt.Sprintf("write %d, carried out: %v, session expires: %v, look %d", m.write, m.done, m.expires, m.look)
}

// Other techniques test the operations that wait or only read.
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

// sweepMoments runs the operation at all moments. If the outcome of an operation is never unknown,
// the variants of its method differ little. Such an operation runs only if all is set.
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
							t.Error("neither a session nor a context ended in any case")
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

// endsAt runs the operation at one moment. It returns how many writes were sent, and whether
// the session or the context ended.
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
				<-s.victim.Done() // the server reports the loss on the next connection
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
			s.refuse.Store(m.expires) // with a connection, the session would notice its loss too early
			ctx.looks.Store(0)
			return zkserver.Fault{CloseBefore: !m.done, DropReply: m.done}
		})
		err := do.act(ctx)
		writes, ended = sent.Load(), ctx.ended.Load()
		s.refuse.Store(false)
		s.srv.SetFault(nil)
		lost := s.lost()
		// Wait until the connection has ended or is back. Closed twice, go-zookeeper waits
		// for itself in a way that keeps virtual time from passing.
		synctest.Wait()
		// After Close, the server has carried out all earlier requests of the session.
		s.victim.Close(context.Background())
		s.started.Wait()
		do.judgeEnd(s, m, err, ended, lost)
		s.other.Close(context.Background())
	})
	return do, writes, ended
}

// judgeEnd compares the error that the caller got with the state of the server.
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
		s.Errorf("%v: neither session nor context has ended, but the error is %v", m, err)
	case do.happened == nil && unknown:
		s.Errorf("%v: no outcome can be unknown, but the error is %v", m, err)
	case do.happened != nil && !unknown && !do.harmless && do.happened():
		s.Errorf("%v: act was carried out, but the error is %v", m, err)
	}
}
