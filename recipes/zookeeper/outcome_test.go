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
// A moment is a look of the recipe at its context. So each operation is done once
// for each write that it sends, whether that is carried out or not, and for each
// of the looks that follow it; at that look the end comes. The time is virtual.

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

// late is where an operation is done.
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
			})(t.Context(), recipes.Config{Servers: []string{"server"}, SessionTimeout: 9 * time.Second, MaxPacket: 64 << 10}))
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
				<-l.victim.Lost() // of which the next connection tells
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
	var want []error
	switch {
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
	unknown := errors.Is(err, recipes.ErrUnknownOutcome)
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
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			o.sweep(t)
		})
	}
}

func operations() []operation {
	const path = "/app/it"
	locks := func(l *late) recipes.Lock {
		return must[recipes.Lock](l.T)(l.victim.Lock(path, recipes.LockConfig{}))
	}
	shared := func(l *late, s recipes.Session) recipes.SharedLock {
		return must[recipes.SharedLock](l.T)(s.SharedLock(path, recipes.SharedLockConfig{Revocable: true}))
	}
	configuration := func(l *late) recipes.Configuration { return configAt(l.T, l.victim, path) }
	queue := func(l *late, s recipes.Session) recipes.Queue {
		return must[recipes.Queue](l.T)(s.Queue(path, recipes.QueueConfig{MaxDeliveries: 1}))
	}
	names := func(l *late) recipes.Names {
		return must[recipes.Names](l.T)(l.victim.Names(path, recipes.NamesConfig{}))
	}
	group := func(l *late) recipes.Group {
		return must[recipes.Group](l.T)(l.victim.Group(path, recipes.GroupConfig{Name: "me"}))
	}
	begun := func(l *late, v recipes.Variant) recipes.Transaction {
		t := must[recipes.Transaction](l.T)(l.victim.Transaction(path, recipes.TransactionConfig{Variant: v}))
		if err := t.Begin(l.ctx(), nil, "1"); err != nil {
			l.Fatal(err)
		}
		return t
	}
	return []operation{
		{
			name: "place a barrier",
			prepare: only(func(l *late, ctx context.Context) error {
				return barrierAt(l.T, l.victim, path).Place(ctx, nil)
			}),
			happened: func(l *late) bool { return l.present(path) },
		},
		{
			name: "remove a barrier",
			prepare: func(l *late) func(context.Context) error {
				b := barrierAt(l.T, l.victim, path)
				if err := b.Place(l.ctx(), nil); err != nil {
					l.Fatal(err)
				}
				return b.Remove
			},
			happened: func(l *late) bool { return !l.present(path) },
		},
		{
			name: "add to a counter",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := counterAt(l.T, l.victim, path).Add(ctx, 1)
				return err
			}),
			happened: func(l *late) bool { return l.holds(path, "1") },
		},
		{
			name: "count down a latch",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := latchAt(l.T, l.victim, path, 2).CountDown(ctx)
				return err
			}),
			happened: func(l *late) bool { return l.holds(path+"/remaining", "1") },
		},
		{
			name: "set a key",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := configuration(l).Set(ctx, "a/b", []byte("x"), recipes.NoRevision)
				return err
			}),
			happened: func(l *late) bool { return l.present(path + "/a/b") },
		},
		{
			name: "set the configuration's own node",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := configuration(l).Set(ctx, "", []byte("x"), recipes.NoRevision)
				return err
			}),
			happened: func(l *late) bool { return l.holds(path, "x") },
		},
		{
			name: "delete a key",
			prepare: func(l *late) func(context.Context) error {
				must[recipes.Revision](l.T)(configuration(l).Set(l.ctx(), "a", nil, recipes.AnyRevision))
				return func(ctx context.Context) error { return configuration(l).Delete(ctx, "a", recipes.AnyRevision) }
			},
			happened: func(l *late) bool { return !l.present(path + "/a") },
		},
		{
			name: "put into a queue",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := queue(l, l.victim).Put(ctx, nil)
				return err
			}),
			happened: func(l *late) bool { return l.below(path+"/queue-") > 0 },
		},
		{
			name: "take from a queue",
			prepare: func(l *late) func(context.Context) error {
				must[recipes.ElementID](l.T)(queue(l, l.victim).Put(l.ctx(), nil))
				return func(ctx context.Context) error {
					_, err := queue(l, l.victim).Take(ctx)
					return err
				}
			},
			happened: func(l *late) bool { return l.below(path+"/queue-") == 0 },
		},
		{
			name: "receive, after a dead letter",
			prepare: func(l *late) func(context.Context) error {
				must[[]recipes.ElementID](l.T)(queue(l, l.victim).PutMany(l.ctx(), nil, nil))
				must[recipes.Delivery](l.T)(queue(l, l.other).Receive(l.ctx()))
				l.other.Close(l.ctx())
				return func(ctx context.Context) error {
					_, err := queue(l, l.victim).Receive(ctx)
					return err
				}
			},
		},
		{
			name: "register a name",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := names(l).Register(ctx, "n", nil)
				return err
			}),
		},
		{
			name: "register a name for good",
			prepare: only(func(l *late, ctx context.Context) error {
				return names(l).RegisterPersistent(ctx, "n", nil)
			}),
			happened: func(l *late) bool { return l.present(path + "/n") },
		},
		{
			name: "unregister a name",
			prepare: func(l *late) func(context.Context) error {
				if err := names(l).RegisterPersistent(l.ctx(), "n", nil); err != nil {
					l.Fatal(err)
				}
				return func(ctx context.Context) error { return names(l).Unregister(ctx, "n", 0) }
			},
			happened: func(l *late) bool { return !l.present(path + "/n") },
		},
		{
			name: "join a group",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := group(l).Join(ctx, nil)
				return err
			}),
		},
		{
			name: "update a member",
			prepare: func(l *late) func(context.Context) error {
				m := must[recipes.Membership](l.T)(group(l).Join(l.ctx(), nil))
				return func(ctx context.Context) error { return m.Update(ctx, []byte("x")) }
			},
			happened: func(l *late) bool { return l.holds(path+"/me", "x") },
			lost:     []error{recipes.ErrNotHeld},
		},
		{
			name: "begin a transaction",
			prepare: only(func(l *late, ctx context.Context) error {
				t := must[recipes.Transaction](l.T)(l.victim.Transaction(path, recipes.TransactionConfig{}))
				return t.Begin(ctx, nil, "1")
			}),
			happened: func(l *late) bool { return l.present(path) },
		},
		{
			name: "join a transaction",
			prepare: func(l *late) func(context.Context) error {
				t := begun(l, recipes.OwnNodes)
				return func(ctx context.Context) error {
					_, err := t.Join(ctx, "1")
					return err
				}
			},
			happened: func(l *late) bool { return l.present(path + "/joined_1") },
		},
		{
			name: "vote",
			prepare: func(l *late) func(context.Context) error {
				site := must[recipes.Site](l.T)(begun(l, "").Join(l.ctx(), "1"))
				return func(ctx context.Context) error { return site.Vote(ctx, recipes.VoteCommit) }
			},
			happened: func(l *late) bool { return l.holds(path+"/s_1", "commit") },
		},
		{
			name: "abort a transaction",
			prepare: func(l *late) func(context.Context) error {
				t := begun(l, "")
				return func(ctx context.Context) error {
					_, err := t.Abort(ctx, "")
					return err
				}
			},
			happened: func(l *late) bool { return l.present(path + "/decision") },
		},
		{
			name: "finish a transaction",
			prepare: func(l *late) func(context.Context) error {
				t := begun(l, "")
				site := must[recipes.Site](l.T)(t.Join(l.ctx(), "1"))
				must[recipes.Decision](l.T)(t.Abort(l.ctx(), ""))
				return site.Done
			},
			happened: func(l *late) bool { return !l.present(path) },
		},
		{
			name: "acquire a lock",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := locks(l).Acquire(ctx)
				return err
			}),
		},
		{
			name: "acquire a permit",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := must[recipes.Semaphore](l.T)(l.victim.Semaphore(path, recipes.SemaphoreConfig{Permits: 2})).Acquire(ctx)
				return err
			}),
		},
		{
			name: "acquire a lock by priority",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := must[recipes.PriorityLock](l.T)(l.victim.PriorityLock(path, recipes.PriorityLockConfig{})).AcquireWrite(ctx)
				return err
			}),
		},
		{
			name: "hand a lock off",
			prepare: func(l *late) func(context.Context) error {
				places := make(chan recipes.Place, 1)
				h := must[recipes.PriorityHold](l.T)(must[recipes.PriorityLock](l.T)(l.victim.PriorityLock(path, recipes.PriorityLockConfig{})).AcquireWrite(l.ctx()))
				waits := must[recipes.PriorityLock](l.T)(l.other.PriorityLock(path, recipes.PriorityLockConfig{Joined: func(p recipes.Place) { places <- p }}))
				go waits.AcquireWrite(l.ctx())
				heir := <-places
				return func(ctx context.Context) error { return h.HandOff(ctx, heir.Znode) }
			},
			// Of the heir nothing tells afterwards; what the error says of it is
			// the fault sweep's.
			happened: func(*late) bool { return false },
		},
		{
			name: "ask a holder to give way",
			prepare: func(l *late) func(context.Context) error {
				h := must[recipes.SharedHold](l.T)(shared(l, l.other).AcquireWrite(l.ctx()))
				return func(ctx context.Context) error { return shared(l, l.victim).Revoke(ctx, h.Znode()) }
			},
		},
		{
			name: "downgrade",
			prepare: func(l *late) func(context.Context) error {
				return must[recipes.SharedHold](l.T)(shared(l, l.victim).AcquireWrite(l.ctx())).Downgrade
			},
			lost: []error{recipes.ErrNotHeld},
		},
		{
			name: "campaign",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := must[recipes.Election](l.T)(l.victim.Election(path, recipes.ElectionConfig{})).Campaign(ctx, nil)
				return err
			}),
		},
		{
			name: "enter a double barrier",
			prepare: only(func(l *late, ctx context.Context) error {
				_, err := doubleBarrierAt(l.T, l.victim, path, 1).Enter(ctx, nil)
				return err
			}),
		},
		{
			name: "leave a double barrier",
			prepare: func(l *late) func(context.Context) error {
				return must[recipes.Passage](l.T)(doubleBarrierAt(l.T, l.victim, path, 1).Enter(l.ctx(), nil)).Leave
			},
			lost: []error{recipes.ErrNotHeld},
		},
	}
}
