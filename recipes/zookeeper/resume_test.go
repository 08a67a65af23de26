package zookeeper_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// A thing is one kind of what a session can hold.
type thing struct {
	name string
	// at returns how to get one, try to get one (nil if that cannot be contended),
	// and take one up, in that session.
	at func(t *testing.T, s recipes.Client, path string) (get, try func(context.Context) (recipes.Grant, error), resume func(context.Context, string, recipes.Token) (recipes.Grant, error))
	// giveBack gives one back.
	giveBack func(context.Context, recipes.Grant) error
}

// kind makes a thing of a recipe's methods.
func kind[R any, G recipes.Grant](name string, of func(recipes.Client, string) (R, error), get, try func(R, context.Context) (G, error), giveBack func(G, context.Context) error) thing {
	asGrant := func(g G, err error) (recipes.Grant, error) {
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	return thing{
		name: name,
		at: func(t *testing.T, s recipes.Client, path string) (_, _ func(context.Context) (recipes.Grant, error), _ func(context.Context, string, recipes.Token) (recipes.Grant, error)) {
			t.Helper()
			r := must.Get(of(s, path))(t)
			return func(ctx context.Context) (recipes.Grant, error) { return asGrant(get(r, ctx)) },
				func(ctx context.Context) (recipes.Grant, error) { return asGrant(try(r, ctx)) },
				func(ctx context.Context, znode string, token recipes.Token) (recipes.Grant, error) {
					return asGrant(any(r).(zktest.Taker[G]).Resume(ctx, znode, token))
				}
		},
		giveBack: func(ctx context.Context, g recipes.Grant) error { return giveBack(g.(G), ctx) },
	}
}

// things are all kinds that can be taken up.
func things() []thing {
	var all []thing
	for _, strategy := range []recipes.Strategy{recipes.Handoff, recipes.Predecessor, recipes.Herd} {
		all = append(all,
			kind("lock by "+string(strategy), func(s recipes.Client, p string) (recipes.Lock, error) {
				return s.Lock(p, recipes.LockConfig{Strategy: strategy})
			}, recipes.Lock.Acquire, recipes.Lock.TryAcquire, recipes.Hold.Release),
			kind("election by "+string(strategy), func(s recipes.Client, p string) (recipes.Election, error) {
				return s.Election(p, recipes.ElectionConfig{Strategy: strategy})
			}, campaign, nil, recipes.Leadership.Resign))
	}
	semaphore := func(s recipes.Client, p string) (recipes.Semaphore, error) {
		return s.Semaphore(p, recipes.SemaphoreConfig{Permits: 1})
	}
	leased := func(d recipes.Dialect) func(s recipes.Client, p string) (recipes.Semaphore, error) {
		return func(s recipes.Client, p string) (recipes.Semaphore, error) {
			return s.Semaphore(p, recipes.SemaphoreConfig{Permits: 1, Dialect: d})
		}
	}
	shared := func(s recipes.Client, p string) (recipes.SharedLock, error) {
		return s.SharedLock(p, recipes.SharedLockConfig{Revocable: true})
	}
	priority := func(s recipes.Client, p string) (recipes.PriorityLock, error) {
		return s.PriorityLock(p, recipes.PriorityLockConfig{})
	}
	return append(all,
		kind("lock of Curator", func(s recipes.Client, p string) (recipes.Lock, error) {
			return s.Lock(p, recipes.LockConfig{Dialect: recipes.Curator})
		}, recipes.Lock.Acquire, recipes.Lock.TryAcquire, recipes.Hold.Release),
		kind("semaphore", semaphore, recipes.Semaphore.Acquire, recipes.Semaphore.TryAcquire, recipes.Hold.Release),
		kind("semaphore of Curator", leased(recipes.Curator), recipes.Semaphore.Acquire, recipes.Semaphore.TryAcquire, recipes.Hold.Release),
		kind("semaphore of kazoo", leased(recipes.Kazoo), recipes.Semaphore.Acquire, recipes.Semaphore.TryAcquire, recipes.Hold.Release),
		kind("slots", func(s recipes.Client, p string) (recipes.Slots, error) {
			return s.Slots(p, recipes.SemaphoreConfig{Permits: 1})
		}, recipes.Slots.Acquire, recipes.Slots.TryAcquire, recipes.SlotHold.Release),
		kind("shared lock for writing", shared, recipes.SharedLock.AcquireWrite, recipes.SharedLock.TryRead, recipes.SharedHold.Release),
		kind("shared lock for reading", shared, recipes.SharedLock.AcquireRead, recipes.SharedLock.TryWrite, recipes.SharedHold.Release),
		kind("priority lock for writing", priority, recipes.PriorityLock.AcquireWrite, recipes.PriorityLock.TryRead, recipes.PriorityHold.Release),
		kind("priority lock for reading", priority, recipes.PriorityLock.AcquireRead, recipes.PriorityLock.TryWrite, recipes.PriorityHold.Release),
		kind("membership", func(s recipes.Client, p string) (recipes.Group, error) {
			return s.Group(p, recipes.GroupConfig{})
		}, func(g recipes.Group, ctx context.Context) (recipes.Membership, error) { return g.Join(ctx, nil) }, nil, recipes.Membership.Leave),
		kind("name", func(s recipes.Client, p string) (recipes.Names, error) { return s.Names(p) },
			register, register, recipes.Registration.Unregister),
		kind("delivery", func(s recipes.Client, p string) (recipes.Queue, error) { return s.Queue(p, recipes.QueueConfig{}) },
			receive, nil, recipes.Delivery.Return),
		kind("delivery by priority", func(s recipes.Client, p string) (recipes.PriorityQueue, error) {
			return s.PriorityQueue(p, recipes.QueueConfig{})
		}, receiveByPriority, nil, recipes.Delivery.Return),
	)
}

func receive(q recipes.Queue, ctx context.Context) (recipes.Delivery, error) {
	if _, err := q.Put(ctx, []byte("x")); err != nil {
		return nil, err
	}
	return q.Receive(ctx)
}

func receiveByPriority(q recipes.PriorityQueue, ctx context.Context) (recipes.Delivery, error) {
	if _, err := q.Put(ctx, 7, []byte("x")); err != nil {
		return nil, err
	}
	return q.Receive(ctx)
}

// A DropRest that fails is called again, and again leaves what was taken up.
func TestDropRestIsRepeated(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
	at := func(path string) recipes.Lock {
		return must.Get(s.Lock(path, recipes.LockConfig{}))(t)
	}
	had := must.Get(at("/kept").Acquire(ctx))(t)
	must.Get(at("/dropped").Acquire(ctx))(t)
	if err := s.(zktest.Movable).DropRest(ctx); !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("of a session that was not resumed: %v", err)
	}
	for _, fails := range []zkserver.Op{zkserver.OpGetEphemerals, zkserver.OpDelete} {
		s = zktest.Move(t, srv.Addr(), s)
		taken := must.Get(at("/kept").(zktest.Taker[recipes.Hold]).Resume(ctx, had.Znode(), had.Token()))(t)
		trying, giveUp := context.WithCancel(ctx)
		hold := make(chan struct{})
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op != fails {
				return zkserver.Fault{}
			}
			giveUp()
			return zkserver.Fault{Hold: hold}
		})
		if err := s.(zktest.Movable).DropRest(trying); !errors.Is(err, context.Canceled) {
			t.Errorf("%v fails: %v", fails, err)
		}
		srv.SetFault(nil)
		close(hold)
		if err := s.(zktest.Movable).DropRest(ctx); err != nil {
			t.Fatal(err)
		}
		if err := taken.Write(ctx); err != nil {
			t.Fatalf("what was taken up: %v", err)
		}
		if line := must.Get(at("/dropped").Contenders(ctx))(t); len(line) != 0 {
			t.Errorf("what was not: %+v", line)
		}
		must.Get(at("/dropped").Acquire(ctx))(t)
	}
}

// What a delivery is, and how often it was delivered, is as before. It can be ended.
func TestADeliveryIsTakenUp(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
	at := func(s recipes.Client) recipes.PriorityQueue {
		return must.Get(s.PriorityQueue("/q", recipes.QueueConfig{}))(t)
	}
	if _, err := at(s).Put(ctx, 7, []byte("data")); err != nil {
		t.Fatal(err)
	}
	if err := must.Get(at(s).Receive(ctx))(t).Return(ctx); err != nil {
		t.Fatal(err)
	}
	had := must.Get(at(s).Receive(ctx))(t)
	s = zktest.Move(t, srv.Addr(), s)
	taken := must.Get(at(s).(zktest.Taker[recipes.Delivery]).Resume(ctx, had.Znode(), had.Token()))(t)
	if !reflect.DeepEqual(taken.Element(), had.Element()) || taken.Attempt() != 2 {
		t.Errorf("%+v, attempt %d; it was %+v", taken.Element(), taken.Attempt(), had.Element())
	}
	if err := s.(zktest.Movable).DropRest(ctx); err != nil {
		t.Fatal(err)
	}
	if err := taken.Ack(ctx); err != nil {
		t.Fatal(err)
	}
	for _, node := range srv.Tree() {
		if strings.HasSuffix(node.Path, "/"+string(had.Element().ID)) {
			t.Errorf("%s is still there", node.Path)
		}
	}
}

// An element that another client has written to is not what was claimed.
func TestADeliveryThatWasChangedIsNotTakenUp(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, s, other := zktest.Bounded(t), zktest.Open(t, srv), zktest.Open(t, srv)
	q := must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
	id := must.Get(q.Put(ctx, nil))(t)
	had := must.Get(q.Receive(ctx))(t)
	lock := must.Get(must.Get(other.Lock("/l", recipes.LockConfig{}))(t).Acquire(ctx))(t)
	if err := lock.Write(ctx, recipes.Set("/q/"+string(id), nil, recipes.AnyVersion)); err != nil {
		t.Fatal(err)
	}
	s = zktest.Move(t, srv.Addr(), s)
	q = must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
	if _, err := q.(zktest.Taker[recipes.Delivery]).Resume(ctx, had.Znode(), had.Token()); !errors.Is(err, recipes.ErrNotHeld) {
		t.Errorf("taken up: %v", err)
	}
}

func campaign(e recipes.Election, ctx context.Context) (recipes.Leadership, error) {
	return e.Campaign(ctx, nil)
}

func register(n recipes.Names, ctx context.Context) (recipes.Registration, error) {
	return n.Register(ctx, "name", nil)
}

// eachThing runs test for each kind, on the in-process server and on a real one.
func eachThing(t *testing.T, test func(t *testing.T, addr, path string, k thing)) {
	on := func(server string, addr func(*testing.T) string) {
		t.Run(server, func(t *testing.T) {
			at := addr(t)
			for i, k := range things() {
				t.Run(k.name, func(t *testing.T) {
					test(t, at, fmt.Sprintf("/%s-%d", rand.Text(), i), k)
				})
			}
		})
	}
	on("embedded", func(t *testing.T) string { return zktest.Embedded(t).Addr() })
	on("real", func(t *testing.T) string { return ensembletest.Shared(t).Addrs()[0] })
}

func TestWhatASessionHeldIsTakenUp(t *testing.T) {
	eachThing(t, func(t *testing.T, addr, path string, k thing) {
		ctx, other := zktest.Bounded(t), zktest.OpenAt(t, addr)
		first := zktest.OpenAt(t, addr)
		get, _, _ := k.at(t, first, path)
		held := must.Get(get(ctx))(t)
		zktest.GuardedWrite(t, held, path+"-before")

		second := zktest.Move(t, addr, first)
		if err := held.Err(); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("in the process that let go it says %v", err)
		}
		_, _, resume := k.at(t, second, path)
		taken := must.Get(resume(ctx, held.Znode(), held.Token()))(t)
		if err := second.(zktest.Movable).DropRest(ctx); err != nil {
			t.Fatal(err)
		}
		if taken.Token() != held.Token() || taken.Znode() != held.Znode() || taken.Err() != nil {
			t.Errorf("took up %s with %d (%v), it was %s with %d", taken.Znode(), taken.Token(), taken.Err(), held.Znode(), held.Token())
		}
		if _, try, _ := k.at(t, other, path); k.name == "name" || strings.Contains(k.name, "lock") || k.name == "semaphore" || k.name == "slots" {
			if g, err := try(ctx); err == nil {
				t.Errorf("another session was granted %s beside it", g.Znode())
			}
		}
		zktest.GuardedWrite(t, taken, path+"-after")
		select {
		case <-taken.Done():
			t.Errorf("lost: %v", taken.Err())
		default:
		}

		// By its identity it can release, which a waiter understands.
		waiting, granted := make(chan struct{}), make(chan error, 1)
		lock := k.name == "lock by handoff"
		if lock {
			line := must.Get(other.Lock(path, recipes.LockConfig{Joined: func(recipes.Place) { close(waiting) }}))(t)
			go func() { _, err := line.Acquire(ctx); granted <- err }()
			<-waiting
		}
		if err := k.giveBack(ctx, taken); err != nil {
			t.Fatal(err)
		}
		if lock {
			if err := <-granted; err != nil {
				t.Fatal(err)
			}
			if stats := must.Get(other.Stats(ctx))(t); stats.Handoffs != 1 {
				t.Errorf("%d handoffs: the waiter has listed the line", stats.Handoffs)
			}
		}
		if err := second.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// The table of what is not what was held: nothing is granted and nothing deleted.
func TestWhatWasNotHeldIsNotTakenUp(t *testing.T) {
	eachThing(t, func(t *testing.T, addr, path string, k thing) {
		ctx, other := zktest.Bounded(t), zktest.OpenAt(t, addr)
		s := zktest.OpenAt(t, addr)
		get, _, _ := k.at(t, s, path)
		held := must.Get(get(ctx))(t)
		// Another session's.
		theirGet, _, _ := k.at(t, other, path+"-theirs")
		theirs := must.Get(theirGet(ctx))(t)

		s = zktest.Move(t, addr, s)
		_, _, resume := k.at(t, s, path)
		_, _, takeTheirs := k.at(t, s, path+"-theirs")
		refused := func(what string, want error, resume func(context.Context, string, recipes.Token) (recipes.Grant, error), znode string, token recipes.Token) {
			t.Helper()
			if g, err := resume(ctx, znode, token); !errors.Is(err, want) {
				t.Errorf("%s: %v, %v", what, g, err)
			}
		}
		refused("another token", recipes.ErrRemoved, resume, held.Znode(), held.Token()+1)
		refused("another session's", recipes.ErrRemoved, takeTheirs, theirs.Znode(), theirs.Token())
		refused("another path's", recipes.ErrInvalid, takeTheirs, held.Znode(), held.Token())
		refused("the path", recipes.ErrInvalid, resume, path, held.Token())
		refused("nothing", recipes.ErrInvalid, resume, "", 0)
		if err := theirs.Err(); err != nil {
			t.Error(err)
		}
		if err := theirs.Write(ctx); err != nil {
			t.Errorf("theirs: %v", err)
		}

		if taken, err := resume(ctx, held.Znode(), held.Token()); err != nil { // it was left alone
			t.Error(err)
		} else {
			refused("what was taken up before", recipes.ErrInvalid, resume, held.Znode(), held.Token())
			if err := k.giveBack(ctx, taken); err != nil {
				t.Error(err)
			}
		}
		refused("what is gone", recipes.ErrRemoved, resume, held.Znode(), held.Token())
	})
}

// A contender that waits is not granted because somebody says that it was.
func TestAWaiterIsNotTakenUpAsAHolder(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			srv := zktest.Embedded(t)
			ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
			must.Get(must.Get(zktest.Open(t, srv).Lock("/lock", recipes.LockConfig{}))(t).Acquire(ctx))(t)
			joined := make(chan recipes.Place, 1)
			lock := must.Get(s.Lock("/lock", recipes.LockConfig{Strategy: strategy, Joined: func(p recipes.Place) { joined <- p }}))(t)
			go lock.Acquire(ctx)
			place := <-joined
			contenders := must.Get(lock.Contenders(ctx))(t)
			at := slices.IndexFunc(contenders, func(c recipes.Contender) bool { return c.Znode == place.Znode })

			s = zktest.Move(t, srv.Addr(), s)
			taker := must.Get(s.Lock("/lock", recipes.LockConfig{Strategy: strategy}))(t).(zktest.Taker[recipes.Hold])
			if _, err := taker.Resume(ctx, place.Znode, contenders[at].Token); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("the waiter: %v", err)
			}
		})
	}
}

// A reader that a writer let in by its downgrade held, and one that waits behind a writer
// did not.
func TestAReaderBehindAWriterIsTakenUpIfItWasLetIn(t *testing.T) {
	for _, downgraded := range []bool{true, false} {
		srv := zktest.Embedded(t)
		ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
		lock := func(s recipes.Client, joined func(recipes.Place)) recipes.SharedLock {
			return must.Get(s.SharedLock("/shared", recipes.SharedLockConfig{Joined: joined}))(t)
		}
		writer := must.Get(lock(zktest.Open(t, srv), nil).AcquireWrite(ctx))(t)
		if downgraded {
			if err := writer.Downgrade(ctx); err != nil {
				t.Fatal(err)
			}
		}
		joined, granted := make(chan recipes.Place, 1), make(chan error, 1)
		go func() {
			_, err := lock(s, func(p recipes.Place) { joined <- p }).AcquireRead(ctx)
			granted <- err
		}()
		place := <-joined
		if downgraded {
			if err := <-granted; err != nil {
				t.Fatal(err)
			}
		}
		contenders := must.Get(lock(s, nil).Contenders(ctx))(t)
		at := slices.IndexFunc(contenders, func(c recipes.Contender) bool { return c.Znode == place.Znode })

		s = zktest.Move(t, srv.Addr(), s)
		_, err := lock(s, nil).(zktest.Taker[recipes.SharedHold]).Resume(ctx, place.Znode, contenders[at].Token)
		if downgraded && err != nil || !downgraded && (!errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved)) {
			t.Errorf("the writer has downgraded: %v; the reader: %v", downgraded, err)
		}
	}
}

// Contenders whose callers have gone with their process would block the line.
func TestWhatNobodyTakesUpIsDropped(t *testing.T) {
	everywhere := func(t *testing.T, addr string) {
		ctx, s, holder, dropped := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr), "/"+rand.Text()
		held := must.Get(must.Get(holder.Lock(dropped, recipes.LockConfig{}))(t).Acquire(ctx))(t)
		kept := must.Get(must.Get(s.Lock(dropped+"-kept", recipes.LockConfig{}))(t).Acquire(ctx))(t)
		zktest.GuardedWrite(t, kept, dropped+"-by-kept")
		joined := make(chan recipes.Place, 1)
		go must.Get(s.Lock(dropped, recipes.LockConfig{Joined: func(p recipes.Place) { joined <- p }}))(t).Acquire(ctx)
		<-joined

		s = zktest.Move(t, addr, s)
		lock := must.Get(s.Lock(dropped+"-kept", recipes.LockConfig{}))(t).(zktest.Taker[recipes.Hold])
		taken := must.Get(lock.Resume(ctx, kept.Znode(), kept.Token()))(t)
		if err := s.(zktest.Movable).DropRest(ctx); err != nil {
			t.Fatal(err)
		}
		line := must.Get(must.Get(holder.Lock(dropped, recipes.LockConfig{}))(t).Contenders(ctx))(t)
		if len(line) != 1 || line[0].Znode != held.Znode() {
			t.Errorf("in line: %+v", line)
		}
		if err := taken.Write(ctx); err != nil {
			t.Errorf("what was taken up: %v", err)
		}
		must.Get(must.Get(s.Lock(dropped+"-new", recipes.LockConfig{}))(t).Acquire(ctx))(t)
	}
	t.Run("embedded", func(t *testing.T) { everywhere(t, zktest.Embedded(t).Addr()) })
	t.Run("real", func(t *testing.T) { everywhere(t, ensembletest.Shared(t).Addrs()[0]) })
}

// A writer that has claimed a priority lock waits for the readers that hold it.
func TestAWriterThatHasOnlyClaimedIsNotTakenUp(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
	reading := must.Get(zktest.Open(t, srv).PriorityLock("/p", recipes.PriorityLockConfig{}))(t)
	must.Get(reading.AcquireRead(ctx))(t)
	claimed := must.Get(s.(interface {
		CreateNamed(context.Context, string, []byte) (session.Stat, error)
	}).CreateNamed(ctx, "/p/writing-00-0000000009", nil))(t)

	s = zktest.Move(t, srv.Addr(), s)
	lock := must.Get(s.PriorityLock("/p", recipes.PriorityLockConfig{}))(t).(zktest.Taker[recipes.PriorityHold])
	if _, err := lock.Resume(ctx, "/p/writing-00-0000000009", recipes.Token(claimed.Czxid)); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved) {
		t.Errorf("the writer: %v", err)
	}
}

// Other readers hold a priority lock beside one that is taken up, and writers wait beside
// each.
func TestAPriorityLockIsTakenUpBesideOthers(t *testing.T) {
	for name, acquire := range map[string]func(recipes.PriorityLock, context.Context) (recipes.PriorityHold, error){
		"reading": recipes.PriorityLock.AcquireRead, "writing": recipes.PriorityLock.AcquireWrite,
	} {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Embedded(t)
			ctx, s, other := zktest.Bounded(t), zktest.Open(t, srv), zktest.Open(t, srv)
			at := func(s recipes.Client, joined func(recipes.Place)) recipes.PriorityLock {
				return must.Get(s.PriorityLock("/p", recipes.PriorityLockConfig{Joined: joined}))(t)
			}
			had := must.Get(acquire(at(s, nil), ctx))(t)
			if name == "reading" {
				must.Get(at(other, nil).AcquireRead(ctx))(t)
			}
			waiting, leave := context.WithCancel(ctx)
			defer leave()
			waits := make(chan struct{})
			go at(other, func(recipes.Place) { close(waits) }).AcquireWrite(waiting)
			<-waits
			taken, err := at(zktest.Move(t, srv.Addr(), s), nil).(zktest.Taker[recipes.PriorityHold]).Resume(ctx, had.Znode(), had.Token())
			if err != nil {
				t.Fatal(err)
			}
			if err := taken.Write(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// DropRest deletes what was not resumed. The acknowledgement is resumed with its leadership.
func TestAnAcknowledgementIsResumedWithItsLeadership(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	first := zktest.Open(t, srv)
	l := must.Get(must.Get(first.Election("/e", recipes.ElectionConfig{}))(t).Campaign(ctx, nil))(t)
	must.Do(t, l.Acknowledge(ctx, []byte("ready")))
	second := zktest.Move(t, srv.Addr(), first)
	e := must.Get(second.Election("/e", recipes.ElectionConfig{}))(t)
	must.Get(e.(zktest.Taker[recipes.Leadership]).Resume(ctx, l.Znode(), l.Token()))(t)
	must.Do(t, second.(zktest.Movable).DropRest(ctx))
	leader := must.Get(e.Leader(ctx))(t)
	if !leader.Acknowledged || string(leader.Acknowledgement) != "ready" {
		t.Errorf("after DropRest the leader is %+v", leader)
	}
}
