package link_test

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The waiter makes the call again with the same request id, when the next plugin serves the
// session.
func TestAWaiterThatCannotBeResumedAsksAgain(t *testing.T) {
	c := client.Unconnected()
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	_, kill := play(t, c, &scripted{
		open:    serves(time.Hour),
		place:   &pb.Place{Znode: "/l/lock-1", Position: 1},
		acquire: func(*pb.AcquireRequest) (*pb.AcquireResponse, error) { <-ended; return nil, nil },
	})
	s := openScripted(t, c)
	places, got := make(chan recipes.Place, 2), make(chan error, 1)
	l := lock(t, s, recipes.LockConfig{Joined: func(p recipes.Place) { places <- p }})
	go func() { _, err := l.Acquire(ctx(t)); got <- err }()
	if p := next(t, places); p.Znode != "/l/lock-1" {
		t.Error(p)
	}
	kill()
	until(t, s, recipes.Suspended)
	asked := make(chan string, 9)
	play(t, c, &scripted{open: serves(time.Hour), acquire: func(r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		asked <- r.GetRequestId() + " " + r.GetResumed().GetZnode()
		if r.GetResumed() != nil {
			return nil, rpcwire.ToStatus(fmt.Errorf("resume: %w", recipes.ErrUnsupported))
		}
		return &pb.AcquireResponse{Grant: &pb.Grant{Token: 5, Znode: "/l/lock-2"}}, nil
	}})
	must.Report(t, next(t, got))
	for _, want := range []string{"1 /l/lock-1", "1 "} {
		if as := next(t, asked); as != want {
			t.Errorf("asked %q, want %q", as, want)
		}
	}
	if len(places) > 0 {
		t.Error("joined was called with another place")
	}
}

// The plugin dies while Joined runs, after the grant. The next plugin resumes the grant and
// serves the session, which Joined calls.
func TestJoinedOfAGrantDelaysNoNextPlugin(t *testing.T) {
	c := client.Unconnected()
	joined, granted, call := make(chan struct{}), make(chan struct{}), make(chan struct{})
	grant := func(token int64) (*pb.AcquireResponse, error) {
		return &pb.AcquireResponse{Grant: &pb.Grant{Token: token, Znode: "/l/lock-1"}}, nil
	}
	_, kill := play(t, c, &scripted{
		open:     serves(time.Hour),
		place:    &pb.Place{Znode: "/l/lock-1", Position: 1},
		acquire:  func(*pb.AcquireRequest) (*pb.AcquireResponse, error) { <-joined; return grant(5) },
		acquired: func() { close(granted) },
	})
	s := openScripted(t, c)
	answered, got := make(chan error, 1), make(chan error, 1)
	l := lock(t, s, recipes.LockConfig{Joined: func(recipes.Place) {
		close(joined)
		<-call
		_, err := lock(t, s, recipes.LockConfig{}).Acquire(ctx(t))
		answered <- err
	}})
	go func() { _, err := l.Acquire(ctx(t)); got <- err }()
	closes(t, "granted", granted)
	kill()
	close(call)
	asked := make(chan int64, 9)
	play(t, c, &scripted{open: serves(time.Hour), acquire: func(r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		asked <- r.GetResumed().GetToken()
		return grant(cmp.Or(r.GetResumed().GetToken(), 6))
	}})
	if token := next(t, asked); token != 5 {
		t.Errorf("it resumes the token %d", token)
	}
	must.Report(t, next(t, answered))
	must.Report(t, next(t, got))
}

// A session that has held nothing for hours has an old proof, and the host's last echo is
// old too. The plugin renews the proof before it grants. The host asks for the renewed one,
// and holds what it is granted.
func TestAGrantInASessionThatWasIdleIsHeld(t *testing.T) {
	for _, call := range grantCalls {
		t.Run(call.name, func(t *testing.T) { isHeldAfterIdling(t, call) })
	}
}

// A grantCall is a call whose answer has grants.
type grantCall struct {
	name string
	of   func(*testing.T, recipes.Client) (recipes.Grant, error)
}

var grantCalls = []grantCall{
	{"Acquire", func(t *testing.T, s recipes.Client) (recipes.Grant, error) {
		h, err := lock(t, s, recipes.LockConfig{}).Acquire(ctx(t))
		if h == nil {
			return nil, err
		}
		return h, err
	}},
	{"ReceiveElements", func(t *testing.T, s recipes.Client) (recipes.Grant, error) {
		all, err := must.Get(s.Queue("/q", recipes.QueueConfig{}))(t).ReceiveMany(ctx(t), 2)
		if len(all) == 0 {
			return nil, err
		}
		return all[len(all)-1], err
	}},
}

// answers makes a plugin answer these calls: an element is received beside one whose grant is
// grant.
func (s *scripted) answers(grant *pb.Grant, asked func(id string)) {
	s.acquire = func(r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		asked(r.GetRequestId())
		return &pb.AcquireResponse{Grant: grant}, nil
	}
	s.receive = func(r *pb.ReceiveElementsRequest) (*pb.ReceiveElementsResponse, error) {
		asked(r.GetRequestId())
		if grant == nil {
			return &pb.ReceiveElementsResponse{}, nil
		}
		return &pb.ReceiveElementsResponse{Elements: []*pb.ReceivedElement{
			{Token: 4, Znode: "/q/queue-1", Element: &pb.Element{}},
			{Token: grant.GetToken(), Znode: grant.GetZnode(), Element: &pb.Element{}},
		}}, nil
	}
}

func isHeldAfterIdling(t *testing.T, call grantCall) {
	const timeout = time.Hour
	var granted atomic.Bool
	c := client.Unconnected()
	plugin := &scripted{
		open: func(st leaseStream, _ *pb.Resume) error {
			err := st.Send(opened(timeout))
			for err == nil {
				var m *pb.OpenRequest
				if m, err = st.Recv(); err != nil {
					break
				}
				known := 2 * timeout
				if granted.Load() {
					known = timeout / 2
				}
				err = st.Send(&pb.OpenResponse{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{
					Number: m.GetBeat().GetNumber(), ContactAge: durationpb.New(0), KnownContactAge: durationpb.New(known),
				}}})
			}
			return err
		},
	}
	plugin.answers(&pb.Grant{Token: 5, Znode: "/l/lock-1"}, func(string) { granted.Store(true) })
	play(t, c, plugin)
	held := must.Get(call.of(t, openScripted(t, c)))(t)
	if err := held.Err(); err != nil {
		t.Errorf("held with %v", err)
	}
}

// An invalid answer of a plugin grants nothing.
func TestAnAnswerWithoutAGrantIsNotHeld(t *testing.T) {
	for name, grant := range map[string]*pb.Grant{"none": nil, "token": {Znode: "/l/lock-1"}, "znode": {Token: 5}, "negative": {Znode: "/l/lock-1", Token: -5}} {
		for _, call := range grantCalls {
			t.Run(name+" "+call.name, func(t *testing.T) {
				c := client.Unconnected()
				asked, abandoned := make(chan string, 1), make(chan string, 1)
				plugin := &scripted{open: serves(time.Hour), abandoned: abandoned}
				plugin.answers(grant, func(id string) { asked <- id })
				play(t, c, plugin)
				s := openScripted(t, c)
				h, err := call.of(t, s)
				if h != nil || !errors.Is(err, recipes.ErrInternal) {
					t.Fatal(h, err)
				}
				if a, b := next(t, asked), next(t, abandoned); a != b {
					t.Errorf("%s was abandoned, and %s was asked for", b, a)
				}
				must.Report(t, s.Err())
			})
		}
	}
}

// A newer plugin may send messages that this host does not know. A broken plugin may send any
// message.
func TestInvalidMessagesOnTheStreamAreIgnored(t *testing.T) {
	age := durationpb.New
	nonsense := []*pb.OpenResponse{
		{},
		opened(time.Nanosecond),
		{Message: &pb.OpenResponse_StateChanged{}},
		{Message: &pb.OpenResponse_StateChanged{StateChanged: &pb.StateChanged{State: 77}}},
		{Message: &pb.OpenResponse_GrantLost{}},
		{Message: &pb.OpenResponse_GrantLost{GrantLost: &pb.GrantLost{RequestId: "none"}}},
		{Message: &pb.OpenResponse_BeatEcho{}},
		{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{Number: 1 << 60, ContactAge: age(1 << 60), Timeout: age(1)}}},
		{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{Number: 1, ContactAge: age(-1 << 60), KnownContactAge: age(-1 << 60), Timeout: age(-1)}}},
		{Message: &pb.OpenResponse_StateChanged{StateChanged: &pb.StateChanged{State: pb.State_STATE_CONNECTED}}},
	}
	c := client.Unconnected()
	play(t, c, &scripted{
		open: func(st leaseStream, r *pb.Resume) error {
			_ = st.Send(opened(time.Hour))
			for _, m := range nonsense {
				_ = st.Send(m)
			}
			echo := serves(time.Hour)
			return echo(quiet{st}, r)
		},
		acquire: func(*pb.AcquireRequest) (*pb.AcquireResponse, error) {
			return &pb.AcquireResponse{Grant: &pb.Grant{Token: 5, Znode: "/l/lock-1"}}, nil
		},
	})
	s := openScripted(t, c)
	h, err := lock(t, s, recipes.LockConfig{}).Acquire(ctx(t))
	if err != nil || h.Err() != nil || s.Err() != nil || s.Timeout() != time.Hour {
		t.Error(err, s.Err(), s.Timeout())
	}
	until(t, s, recipes.Connected)
}

// quiet is a stream on which only Opened was sent.
type quiet struct{ leaseStream }

func (q quiet) Send(m *pb.OpenResponse) error {
	if m.GetOpened() != nil {
		return nil
	}
	return q.leaseStream.Send(m)
}
