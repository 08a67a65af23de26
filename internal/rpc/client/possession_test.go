package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

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
	s.begin(next)
	if s.serving.Load() != nil {
		t.Error("it serves")
	}
	last := generationOf()
	s.begin(last)
	if s.serving.Load() != last {
		t.Error("the next one does not serve")
	}
}

// drops answers DropRest like a plugin that ends meanwhile, or does not answer.
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
	return nil, wire.ToStatus(context.Canceled, nil)
}

// The last answer of a plugin that has ended is not a refusal: the next one resumes the
// session. It does not wait for a plugin that lost its stream and does not answer.
func TestAPluginThatEndsAtDropRestLosesNoSession(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, generationOf := resumable(t)
			next := generationOf()
			s.sessions = drops{ends: next.stop, hangs: hangs}
			s.resumePossessions(next)
			must.Report(t, s.Err())
		})
	}
}

// begun answers like a plugin that has begun a transaction of that name.
type begun struct {
	pb.TransactionServiceClient
	name string
}

func (b begun) BeginTransaction(context.Context, *pb.BeginTransactionRequest, ...grpc.CallOption) (*pb.BeginTransactionResponse, error) {
	return &pb.BeginTransactionResponse{Transaction: b.name}, nil
}

// A transaction without a name cannot be resumed: the next plugin would begin another one.
func TestATransactionWithoutANameIsNotResumed(t *testing.T) {
	for name, want := range map[string]bool{"": false, "tx-1": true} {
		s, generationOf := resumable(t)
		s.begin(generationOf())
		s.Client.transactions = begun{name: name}
		tx, err := s.Transaction("/tx", recipes.TransactionConfig{})
		if err == nil {
			err = tx.Begin(t.Context(), nil, "a")
		}
		if resumes := s.part("/tx") != nil; err != nil || resumes != want {
			t.Errorf("name %q: %v; resumed: %v", name, err, resumes)
		}
	}
}

// The plugin that has resumed all possessions of a session is its owner, and is not asked to
// resume later ones. A lost session records no possession, and neither does one that cannot outlive
// its plugin.
func TestTheOwnerIsAskedForNothingAgain(t *testing.T) {
	s, generationOf := resumable(t)
	left := func(of *generation) int {
		rest, _, all := s.notResumed(of)
		if all != (len(rest) == 0) {
			t.Errorf("%d are left, and all are resumed: %v", len(rest), all)
		}
		return len(rest)
	}
	has := func(key string) *part {
		p := &part{s: s, key: key}
		s.addPart(p)
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
	if has("/late"); s.part("/late") != nil {
		t.Error("a session that is lost has a part")
	}
	s, _ = resumable(t)
	s.resumable = false
	if has("/never"); s.part("/never") != nil {
		t.Error("a session that ends with its plugin has a part")
	}
}

// A contender is offered a turn in each generation until it has used it. One without a place
// has nothing to resume, and would never take the turn for which the session waits.
func TestAContenderWithAPlaceIsOfferedItsTurn(t *testing.T) {
	s, generationOf := resumable(t)
	w, none := &waiter{turns: make(chan turn, 1)}, &waiter{turns: make(chan turn, 1)}
	s.expect("1", w)
	s.expect("2", none)
	s.begins(w, s.owner, nil)
	s.begins(none, s.owner, nil)
	s.placed(w, s.owner, recipes.Place{Znode: "/l/lock-1"})
	for range 2 { // the first plugin ends before the turn is used
		next := generationOf()
		_, turns, _ := s.notResumed(next)
		if len(turns) != 1 || len(w.turns) != 1 || len(none.turns) != 0 {
			t.Fatalf("%d turns; %d and %d are offered", len(turns), len(w.turns), len(none.turns))
		}
		offered := <-w.turns
		s.begins(w, next, &offered)
		if offered.in != next || w.resumed.GetZnode() != "/l/lock-1" {
			t.Errorf("it resumes %v", w.resumed)
		}
		s.returned(w)
		select {
		case <-turns[0].done:
		default:
			t.Fatal("the session still waits for the turn")
		}
		if _, _, all := s.notResumed(next); !all {
			t.Error("the turn counts for nothing")
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
	s.Client.Close()
	if err := s.run(t.Context()); err == nil || len(p.sessions) != 0 {
		t.Errorf("%v; %d sessions are left", err, len(p.sessions))
	}
}

// unknown answers like a plugin that does not know the element.
type unknown struct{ pb.QueueServiceClient }

func (unknown) AcknowledgeElement(context.Context, *pb.AcknowledgeElementRequest, ...grpc.CallOption) (*pb.AcknowledgeElementResponse, error) {
	return nil, wire.ToStatus(recipes.ErrNotHeld, nil)
}

// The client is closed just before the acknowledgement. No goroutine can make the call then.
func TestAnAcknowledgementInAClosedClientReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := resumable(t)
		s.queues = unknown{}
		s.Client.Close()
		d := &delivery{remoteGrant: &remoteGrant{s: s, id: "1", lost: make(chan struct{})}, done: make(chan struct{})}
		if err := d.Ack(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		lost := &delivery{remoteGrant: &remoteGrant{s: s, id: "2", lost: make(chan struct{})}, done: make(chan struct{})}
		lost.lose(recipes.ErrExpired)
		for _, end := range []func(*delivery, context.Context) error{(*delivery).Ack, (*delivery).Return} {
			if err := end(lost, t.Context()); !errors.Is(err, recipes.ErrExpired) {
				t.Errorf("of a delivery that was lost: %v", err)
			}
		}
	})
}

// lost answers a downgrade with the loss of the session.
type lost struct{ pb.ReadWriteLockServiceClient }

func (lost) Downgrade(context.Context, *pb.DowngradeRequest, ...grpc.CallOption) (*pb.DowngradeResponse, error) {
	return nil, wire.ToStatus(recipes.ErrExpired, nil)
}

// A hold whose session ends during the downgrade is not held any more.
func TestADowngradeWhoseSessionEndsIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, generationOf := resumable(t)
		s.begin(generationOf())
		s.readWriteLocks = lost{}
		h := newSharedHold(&remoteGrant{s: s, id: "1", lost: make(chan struct{})}, recipes.Writing)
		if err := h.Downgrade(t.Context()); !errors.Is(err, recipes.ErrNotHeld) || !errors.Is(err, recipes.ErrExpired) {
			t.Errorf("it ends with %v", err)
		}
	})
}
