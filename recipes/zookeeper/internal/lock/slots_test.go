package lock_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func slotsAt(t *testing.T, s recipes.Recipes, permits int, joined ...func(recipes.Place)) recipes.Slots {
	t.Helper()
	cfg := recipes.SemaphoreConfig{Permits: permits, Data: []byte("me")}
	if len(joined) > 0 {
		cfg.Joined = joined[0]
	}
	return must.Get(s.Slots("/slots", cfg))(t)
}

func slotOf(t *testing.T, s recipes.Recipes, permits, want int) recipes.SlotHold {
	t.Helper()
	h := must.Get(slotsAt(t, s, permits).Acquire(t.Context()))(t)
	if h.Slot() != want {
		t.Errorf("number %d; want %d", h.Slot(), want)
	}
	must.Do(t, h.Write(t.Context()))
	return h
}

// A claim creates no znode, so it needs no sequence number. After the last one, contenders are
// ordered by creation.
func TestSlotsGoOnAfterTheLastSequenceNumber(t *testing.T) {
	srv := zktest.Embedded(t)
	s := zktest.Open(t, srv)
	first := slotOf(t, s, 2, 0) // creates the path
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if zktest.Creates(r.Op) {
			must.Report(t, srv.SetSequence("/slots", math.MaxInt32))
		}
		return zkserver.Fault{}
	})
	slotOf(t, s, 2, 1)
	must.Do(t, first.Release(t.Context()))
	slotOf(t, s, 2, 0)
}

// The version -1 matches every version. A claim at that version would not notice another one.
func TestAClaimComparesEveryVersion(t *testing.T) {
	for _, version := range []int32{-2, -1, math.MaxInt32} {
		srv := zktest.Embedded(t)
		s, other := zktest.Open(t, srv), zktest.Open(t, srv)
		slotOf(t, s, 4, 0)
		must.Do(t, srv.SetVersion("/slots", version))
		claim := func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti }
		met := zktest.Between(srv, s, claim, func() { slotOf(t, other, 4, 1) })
		slotOf(t, s, 4, 2)
		if !met() {
			t.Errorf("version %d: the case was not met", version)
		}
		slotOf(t, s, 4, 3)
	}
}

// Whatever name a server gives to a contender, no call panics.
func TestAServerThatNamesAContenderDifferently(t *testing.T) {
	srv := zktest.Embedded(t)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return renaming{c}, err
	}
	s := must.Get(zookeeper.Dialer(dial).Open(t.Context(), recipes.SessionConfig{Servers: []string{srv.Addr()}}))(t)
	defer s.Close(context.Background())
	h := slotOf(t, s, 2, 0)
	if !strings.HasPrefix(h.Znode(), "/slots/_x_") {
		t.Errorf("%s: the case was not met", h.Znode())
	}
	must.Do(t, h.Release(t.Context()))
}

// renaming changes the prefix of protected znodes in what is sent.
type renaming struct{ net.Conn }

func (r renaming) Write(p []byte) (int, error) {
	return r.Conn.Write(bytes.ReplaceAll(p, []byte("/_c_"), []byte("/_x_")))
}

// A persistent znode with a contender's name occupies a place and has no number. Here it appears
// while a contender claims, and displaces a contender behind it that claimed faster.
func TestAPersistentZnodeHidesNoNumber(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		session, other := s.Session(), s.Session()
		must.Do(t, slotOf(t, session, 2, 0).Release(s.Ctx)) // uses the first sequence number
		agrees := zktest.Nth(2, func(r zkserver.Request) bool { return r.Op == zkserver.OpGetData && r.Path == "/slots" })
		met := zktest.Between(srv, session, agrees, func() {
			slotOf(t, other, 2, 0)
			s.Make("/slots/lease-0000000000", nil, 0)
		})
		slotOf(t, session, 2, 1)
		if !met() {
			t.Error("the case was not met")
		}
	})
}

// Another client writes to a lease. Then it has no number, even if its data are as before, and the
// hold ends. Its znode is deleted, so it takes no permit.
func TestALeaseThatIsWrittenHasNoNumber(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		s.Path = "/slots"
		session := s.Session()
		for _, watched := range []bool{false, true} {
			late := slotOf(t, session, 1, 0)
			data := s.Data(late.Znode())
			if watched {
				late.Done()
				must.Get(s.Raw.Set(late.Znode(), data, -1))(t)
				s.Is(s.Lost(late), recipes.ErrRemoved)
			} else {
				must.Get(s.Raw.Set(late.Znode(), data, -1))(t)
				s.Is(late.Write(s.Ctx), recipes.ErrRemoved)
				s.Is(late.Err(), recipes.ErrRemoved)
			}
			next := slotOf(t, session, 1, 0)
			s.Alone(next.Znode())
			must.Do(t, next.Release(s.Ctx))
		}
		first := slotOf(t, session, 2, 0)
		must.Get(s.Raw.Set(first.Znode(), s.Data(first.Znode()), -1))(t)
		slotOf(t, session, 2, 0)
		s.Is(first.Write(s.Ctx), recipes.ErrRemoved)
	})
}

// A contender claims slowly, and the contender behind it gets the number first. The slow one's
// token is larger, although its znode is older.
func TestTheTokensOfANumberGrow(t *testing.T) {
	srv := zktest.Embedded(t)
	s, other := zktest.Open(t, srv), zktest.Open(t, srv)
	must.Do(t, slotOf(t, s, 2, 0).Release(t.Context())) // the path exists
	var faster recipes.SlotHold
	agrees := zktest.Nth(2, func(r zkserver.Request) bool { return r.Op == zkserver.OpGetData && r.Path == "/slots" })
	zktest.Between(srv, s, agrees, func() {
		faster = slotOf(t, other, 2, 0)
		must.Do(t, faster.Release(t.Context()))
	})
	slower := slotOf(t, s, 2, 0)
	if faster == nil || slower.Token() <= faster.Token() {
		t.Errorf("number 0 was held with %v, and then with token %d", faster, slower.Token())
	}
}

// A claim that fails leaves no znode.
func TestAClaimThatFailsLeavesNoZnode(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		session := s.Session()
		first := slotOf(t, session, 3, 0)
		must.Get(s.Raw.SetACL("/slots", zk.WorldACL(zk.PermAll&^zk.PermWrite), -1))(t)
		if _, err := slotsAt(t, session, 3).Acquire(s.Ctx); !errors.Is(err, recipes.ErrAccessDenied) {
			t.Errorf("acquired: %v", err)
		}
		s.Path = "/slots"
		s.Alone(first.Znode())
	})
}

// A session that has released its number holds nothing, so it confirms nothing.
func TestAReleasedNumberIsNotConfirmed(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		must.Do(t, slotOf(t, s, 2, 0).Release(ctx))
		time.Sleep(s.Timeout())
		synctest.Wait()
		before := srv.Counters()
		time.Sleep(10 * s.Timeout())
		synctest.Wait()
		if n := srv.Counters().Sub(before).Requests[zkserver.OpSync]; n > 0 {
			t.Errorf("%d syncs after the release", n)
		}
	})
}

// The process of a waiter ends when its claim is committed and the reply is lost. Its successor finds
// the number. It does not claim another one.
func TestAResumedWaiterKeepsItsNumber(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	h := slotOf(t, s, 2, 0)
	other := zktest.Open(t, srv)
	second := slotOf(t, other, 2, 1)
	joined := make(chan recipes.Place, 1)
	waits, stop := context.WithCancel(ctx)
	defer stop()
	result := zktest.Go(waits, slotsAt(t, s, 2, func(p recipes.Place) { joined <- p }).Acquire)
	place := <-joined
	committed := make(chan struct{})
	srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		if r.Op == zkserver.OpMulti && r.SessionID == s.ID() {
			close(committed)
			srv.RefuseConnections(true)
			f.DropReply = true
		}
		return f
	})
	must.Do(t, second.Release(ctx))
	<-committed
	must.Do(t, s.(zktest.Movable).Detach(ctx))
	if r := <-result; r.Err == nil {
		t.Fatalf("granted %s: the case was not met", r.Got.Znode())
	}
	srv.SetFault(nil)
	srv.RefuseConnections(false)
	next := must.Get(zookeeper.Resume(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}}, s.(zktest.Movable).ResumeTicket(), time.Now()))(t)
	defer next.Close(ctx)
	before := srv.Counters().Requests[zkserver.OpMulti]
	type waiter interface {
		ResumeWaiting(context.Context, string, bool) (recipes.SlotHold, error)
	}
	again := must.Get(slotsAt(t, next, 2).(waiter).ResumeWaiting(ctx, place.Znode, false))(t)
	if again.Slot() != 1 || again.Znode() != place.Znode || srv.Counters().Requests[zkserver.OpMulti] != before {
		t.Errorf("resumed with number %d and %d further claims; want 1 and none", again.Slot(), srv.Counters().Requests[zkserver.OpMulti]-before)
	}
	must.Do(t, again.Write(ctx))
	resumes := slotsAt(t, next, 2).(zktest.Taker[recipes.SlotHold])
	if _, err := resumes.Resume(ctx, h.Znode(), h.Token()-1); !errors.Is(err, recipes.ErrRemoved) {
		t.Errorf("resumed with another token: %v", err)
	}
	first := must.Get(resumes.Resume(ctx, h.Znode(), h.Token()))(t)
	if first.Slot() != 0 || first.Token() >= again.Token() {
		t.Errorf("resumed number %d with token %d; the other has token %d", first.Slot(), first.Token(), again.Token())
	}
	must.Do(t, first.Write(ctx))
}

// Data that does not fit into the transaction of a claim is refused before the contender waits.
func TestSlotsRefuseDataThatNoClaimHasRoomFor(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	s := must.Get(zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}, MaxPacket: 64 << 10}))(t)
	defer s.Close(ctx)
	for size := 63 << 10; size <= 64<<10; size += 32 {
		slots := must.Get(s.Slots("/large", recipes.SemaphoreConfig{Permits: 1, Data: []byte(strings.Repeat("x", size))}))(t)
		before := srv.Counters().Requests[zkserver.OpMulti]
		h, err := slots.Acquire(ctx)
		if err == nil {
			err = h.Release(ctx)
		} else if srv.Counters().Requests[zkserver.OpMulti] != before || !errors.Is(err, recipes.ErrTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
			return
		}
		if err != nil && !errors.Is(err, recipes.ErrTooLarge) {
			t.Fatal(err)
		}
	}
}
