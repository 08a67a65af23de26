package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
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
		c.end()
		c.ended.Store(true)
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

// latePath is where operations are done.
const latePath = "/app/it"

// late is the stage of an operation.
type late struct {
	*testing.T
	srv           *zkserver.Server
	victim, other recipes.Session
}

func (l *late) ctx() context.Context { return l.Context() }

// data returns what a node holds, and whether it exists.
func (l *late) data(path string) (string, bool) {
	for _, n := range l.srv.Tree() {
		if n.Path == path {
			return string(n.Data), true
		}
	}
	return "", false
}

func (l *late) holds(path, data string) bool {
	found, ok := l.data(path)
	return ok && found == data
}

// version is that of a node's data.
func (l *late) version(path string) int32 {
	for _, n := range l.srv.Tree() {
		if n.Path == path {
			return n.Stat.Version
		}
	}
	return 0
}

func (l *late) present(path string) bool { _, ok := l.data(path); return ok }

// below counts the nodes whose paths start so.
func (l *late) below(prefix string) int {
	n := 0
	for _, node := range l.srv.Tree() {
		if strings.HasPrefix(node.Path, prefix) {
			n++
		}
	}
	return n
}

// operation is what is done at every moment.
type operation struct {
	name string
	// prepare is undisturbed; it returns what is then done.
	prepare func(l *late) func(context.Context) error
	// happened reports whether it was carried out. Only an error that matches
	// ErrUnknownOutcome may leave that open. nil: there is nothing that the caller
	// would have to find out, and the error never matches it.
	happened func(l *late) bool
	// lost are what the error matches beside ErrSessionLost if the session expires.
	lost []error
	// once: it is sent once and never looked after, so that an outcome is unknown
	// before anything has ended.
	once bool
}

func (o operation) sweep(t *testing.T) {
	cases, windows := 0, 0
	for write := int64(1); ; write++ {
		for _, done := range []bool{false, true} {
			for _, expires := range []bool{false, true} {
				for look := int32(1); ; look++ {
					writes, ended := o.run(t, moment{write, done, expires, look})
					cases++
					if writes < write {
						if cases == 1 || windows == 0 {
							t.Errorf("%d cases, and in none something ended", cases)
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

// run does it at one moment and returns how many writes were sent, and whether
// the end came.
func (o operation) run(t *testing.T, m moment) (writes int64, ended bool) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		var refuse atomic.Bool
		session := func() recipes.Session {
			s := must[recipes.Session](t)(zookeeper.OpenWith(func(ctx context.Context, network, address string) (net.Conn, error) {
				if refuse.Load() {
					return nil, errors.New("refused")
				}
				client, server := net.Pipe()
				go srv.ServeConn(server)
				return client, nil
			})(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: 9 * time.Second, MaxPacket: 64 << 10}))
			return s
		}
		l := &late{T: t, srv: srv, victim: session(), other: session()}
		act := o.prepare(l)

		inner, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := &lateEnd{Context: inner, at: m.look}
		ctx.looks.Store(beforeFault)
		ctx.end = func() {
			if m.expires {
				srv.ExpireSession(l.victim.ID())
				refuse.Store(false)
				<-l.victim.Done() // of which the next connection tells
			} else {
				cancel()
			}
		}
		var sent, atReturn atomic.Int64
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			switch r.Op {
			case zkserver.OpCreate, zkserver.OpCreate2, zkserver.OpDelete, zkserver.OpSetData, zkserver.OpMulti:
			default:
				return zkserver.Fault{}
			}
			if r.SessionID != l.victim.ID() || sent.Add(1) != m.write {
				return zkserver.Fault{}
			}
			refuse.Store(m.expires) // or the session would know too early
			ctx.looks.Store(0)
			return zkserver.Fault{CloseBefore: !m.done, DropReply: m.done}
		})
		err := act(ctx)
		atReturn.Store(sent.Load())
		refuse.Store(false)
		srv.SetFault(nil)
		lost := l.victim.Err() != nil
		// Until the connection has ended or is back: go-zookeeper, told to close
		// twice, waits for itself in a way that holds up virtual time.
		synctest.Wait()
		// What was sent before a session ends is carried out before that.
		l.victim.Close(context.Background())
		o.judge(l, m, err, ctx.ended.Load(), lost)
		l.other.Close(context.Background())
		writes, ended = atReturn.Load(), ctx.ended.Load()
	})
	return writes, ended
}

// judge compares what the caller was told with what is so.
func (o operation) judge(l *late, m moment, err error, ended, lost bool) {
	if err == nil {
		return
	}
	unknown := errors.Is(err, recipes.ErrUnknownOutcome)
	var want []error
	switch {
	case o.once && unknown:
	case ended && !m.expires:
		want = []error{context.Canceled}
	case lost:
		want = append([]error{recipes.ErrSessionLost}, o.lost...)
	}
	for _, w := range want {
		if !errors.Is(err, w) {
			l.Errorf("%v: the error is %v; want %v", m, err, w)
		}
	}
	switch {
	case len(want) == 0 && !unknown:
		l.Errorf("%v: nothing has ended, and the error is %v", m, err)
	case o.happened == nil && unknown:
		l.Errorf("%v: the error is %v, of which nothing is unknown to the caller", m, err)
	case o.happened != nil && !unknown && o.happened(l):
		l.Errorf("%v: it has happened, and the error is %v", m, err)
	}
}

// only is an operation that needs no preparation.
func only(act func(l *late, ctx context.Context) error) func(l *late) func(context.Context) error {
	return func(l *late) func(context.Context) error {
		return func(ctx context.Context) error { return act(l, ctx) }
	}
}

func TestAnUnknownOutcomeIsToldWithWhatHasEnded(t *testing.T) {
	for _, o := range append(dataOperations(), standingOperations()...) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			o.sweep(t)
		})
	}
}
