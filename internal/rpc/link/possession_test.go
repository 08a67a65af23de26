package link

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The plugin's stream ends while the plugin resumes the last grant. If it served the session,
// calls would be sent to it again and again, and waiters would lose their place.
func TestAPluginThatHasEndedDoesNotBeginToServe(t *testing.T) {
	s, generationOf := resumable(t)
	s.mu.Lock()
	s.serve(nil)
	s.mu.Unlock()
	next := generationOf()
	next.stop()
	s.startServing(next)
	if s.serving.Load() != nil {
		t.Error("it serves")
	}
	last := generationOf()
	s.startServing(last)
	if s.serving.Load() != last {
		t.Error("the next one does not serve")
	}
}

// A call that is sent before it is known which connection carries calls keeps a gRPC stream, and
// its memory, for as long as it waits.
func TestTheNextPluginServesOnceItsCallsHaveAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, generationOf := resumable(t)
		known, asked := make(chan struct{}), false
		next := generationOf()
		next.calls, _ = carry.New(nil, func(context.Context) (net.Conn, error) {
			<-known
			return nil, recipes.ErrUnsupported
		}).Start()
		go next.calls.Run(t.Context())
		s.client.sessions = drops{ends: func() { asked = true; next.stop() }}
		go s.resumePossessions(next)
		synctest.Wait()
		if asked {
			t.Error("it was called before")
		}
		close(known)
		synctest.Wait()
		if !asked {
			t.Error("it was not called afterwards")
		}
	})
}

// drops answers DropRest like a plugin that ends during the call, or does not answer.
type drops struct {
	pb.SessionServiceClient
	ends  func()
	hangs bool
}

func (d drops) DropRest(ctx context.Context, _ *pb.DropRestRequest, _ ...grpc.CallOption) (*pb.DropRestResponse, error) {
	d.ends()
	if d.hangs {
		<-ctx.Done()
	}
	return nil, wire.ToStatus(context.Canceled)
}

// The last answer of a plugin that has ended is not a refusal: the next one resumes the
// session. A session does not wait for a plugin that lost its stream and does not answer.
func TestAPluginThatEndsAtDropRestLosesNoSession(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, generationOf := resumable(t)
			next := generationOf()
			s.client.sessions = drops{ends: next.stop, hangs: hangs}
			s.resumePossessions(next)
			must.Report(t, s.Err())
		})
	}
}

// The plugin that has resumed all possessions of a session is its owner, and is not asked to
// resume later ones. A session that is lost, or that cannot outlive its plugin, records no
// possession.
func TestTheOwnerIsAskedForNothingAgain(t *testing.T) {
	s, generationOf := resumable(t)
	left := func(of *generation) int {
		rest, _, all := s.notResumed(of)
		if all != (len(rest) == 0) {
			t.Errorf("%d are left, and all are resumed: %v", len(rest), all)
		}
		return len(rest)
	}
	has := func(key string) *Part {
		p := &Part{Key: key}
		s.Keep(p)
		return p
	}
	first, next := s.owner, generationOf()
	p := has("/one")
	if n := left(first); n != 0 {
		t.Errorf("the first plugin is asked for %d", n)
	}
	if n := left(next); n != 1 || s.owner != first {
		t.Errorf("the next one is asked for %d, and is the owner: %v", n, s.owner == next)
	}
	p.at = next
	if n := left(next); n != 0 || s.owner != next {
		t.Errorf("the next one is asked for %d, and is the owner: %v", n, s.owner == next)
	}
	has("/two")
	if n := left(next); n != 0 {
		t.Errorf("the owner is asked for %d", n)
	}
	s.lose(recipes.ErrPluginLost)
	if has("/late"); s.Part("/late") != nil {
		t.Error("a session that is lost has a part")
	}
	s, _ = resumable(t)
	s.resumable = false
	if has("/never"); s.Part("/never") != nil {
		t.Error("a session that ends with its plugin has a part")
	}
}

// A call with a place is offered to each generation until it has taken an offer. A call without a
// place has nothing to resume. It would never take an offer, and the session would wait.
func TestACallWithAPlaceIsOfferedToTheNextPlugin(t *testing.T) {
	s, generationOf := resumable(t)
	w, none := newPendingCall(nil, false), newPendingCall(nil, false)
	s.addPending("1", w)
	s.addPending("2", none)
	s.callBegun(w, s.owner, nil)
	s.callBegun(none, s.owner, nil)
	s.placed(w, recipes.Place{Znode: "/l/lock-1"})
	for range 2 { // the first plugin ends before the offer is taken
		next := generationOf()
		_, offers, _ := s.notResumed(next)
		if len(offers) != 1 || len(w.offers) != 1 || len(none.offers) != 0 {
			t.Fatalf("%d offers; the calls have %d and %d", len(offers), len(w.offers), len(none.offers))
		}
		offered := <-w.offers
		s.callBegun(w, next, &offered)
		if offered.in != next || w.resumed.GetZnode() != "/l/lock-1" {
			t.Errorf("it resumes %v", w.resumed)
		}
		s.callReturned(w)
		select {
		case <-offers[0].done:
		default:
			t.Fatal("the session still waits for the call")
		}
		if _, _, all := s.notResumed(next); !all {
			t.Error("the call is offered again")
		}
	}
}

// A plugin whose sessions move does not wait for a session that another plugin serves.
func TestASessionOfAnotherPluginIsMovable(t *testing.T) {
	s, _ := resumable(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.newest.state = recipes.Suspended
	if err := s.movable(ended, s.newest.plugin); err == nil {
		t.Error("without a connection to ZooKeeper it is movable")
	}
	if err := s.movable(ended, new(Plugin)); err != nil {
		t.Errorf("of another plugin: %v", err)
	}
}

// A session that the client no longer runs is not counted by its plugin.
func TestASessionThatIsNotRunKeepsNoPlugin(t *testing.T) {
	s, _ := resumable(t)
	p := s.newest.plugin
	p.sessions[s] = true
	s.client.Close()
	if err := s.run(t.Context()); err == nil || len(p.sessions) != 0 {
		t.Errorf("%v; %d sessions are left", err, len(p.sessions))
	}
}

// The client is closed just before a delivery is acknowledged. No goroutine can make the call then.
func TestWorkOfAClosedClientIsDone(t *testing.T) {
	s, _ := resumable(t)
	s.client.Close()
	done := false
	if s.Go(func() { done = true }); !done {
		t.Error("it was not done")
	}
}

// The holder cannot end a grant that was lost. The error is the reason of the loss.
func TestTheEndOfALostGrantIsItsLoss(t *testing.T) {
	s, _ := resumable(t)
	g := &Grant{s: s, id: "1", lost: make(chan struct{})}
	must.Do(t, g.End())
	if err := g.End(); !errors.Is(err, recipes.ErrReleased) {
		t.Errorf("ended twice: %v", err)
	}
	lost := &Grant{s: s, id: "2", lost: make(chan struct{})}
	lost.Lose(recipes.ErrExpired)
	if err := lost.End(); !errors.Is(err, recipes.ErrExpired) {
		t.Errorf("lost: %v", err)
	}
}
