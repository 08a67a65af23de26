package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// removed is a grant of any kind whose znode was deleted.
type removed struct{ recipes.Grant }

func (removed) Write(context.Context, ...recipes.Op) error { return recipes.ErrRemoved }
func (removed) Acknowledge(context.Context, []byte) error  { return recipes.ErrRemoved }
func (removed) Update(context.Context, []byte) error       { return recipes.ErrRemoved }
func (removed) Downgrade(context.Context) error            { return recipes.ErrRemoved }
func (removed) HandOff(context.Context, string) error      { return recipes.ErrRemoved }
func (removed) Token() recipes.Token                       { return 1 }
func (removed) Znode() string                              { return "" }
func (removed) Err() error                                 { return nil } // not watched
func (removed) Mode() recipes.Mode                         { return recipes.Writing }
func (removed) Revoked() <-chan struct{}                   { return nil }
func (removed) Release(context.Context) error              { return nil }
func (removed) Resign(context.Context) error               { return nil }

// The session can then hold another grant.
func TestCallThatFindsTheZnodeDeletedEndsTheGrant(t *testing.T) {
	for name, call := range map[string]func(s *Server) error{
		"Write": func(s *Server) error {
			_, err := service{Server: s}.Write(t.Context(), &pb.WriteRequest{RequestId: "it"})
			return err
		},
		"Acknowledge": func(s *Server) error {
			_, err := service{Server: s}.Acknowledge(t.Context(), &pb.AcknowledgeRequest{RequestId: "it"})
			return err
		},
		"Update": func(s *Server) error {
			return update(t.Context(), s, &pb.UpdateRequest{RequestId: "it"})
		},
		"Downgrade": func(s *Server) error {
			_, err := service{Server: s}.Downgrade(t.Context(), &pb.DowngradeRequest{RequestId: "it"})
			return err
		},
		"HandOff": func(s *Server) error {
			_, err := service{Server: s}.HandOff(t.Context(), &pb.HandOffRequest{RequestId: "it"})
			return err
		},
	} {
		s := New(Config{})
		ss := &session{ctx: t.Context()}
		ss.acquisitions = newAcquisitions(ss, 1)
		s.sessions[""] = ss
		acquire := func(id string) error {
			_, err := ss.acquisitions.callWith(t.Context(), requestOf(id), func(context.Context, func(recipes.Place)) (*grant, error) {
				return &grant{Grant: removed{}}, nil
			})
			return err
		}
		must.Do(t, acquire("it"))
		if err := acquire("too much"); !errors.Is(err, recipes.ErrLimit) {
			t.Errorf("%s: beside the grant: %v", name, err)
		}
		if err := call(s); !errors.Is(err, recipes.ErrRemoved) {
			t.Errorf("%s: %v", name, err)
		}
		if err := acquire("next"); err != nil {
			t.Errorf("%s: after the grant: %v", name, err)
		}
	}
}

// A request id is not used for another kind of grant, and a call without a request id gets no
// grant.
func TestAGrantOfAnotherKindIsRefused(t *testing.T) {
	s := New(Config{})
	ss := &session{ctx: t.Context()}
	ss.acquisitions = newAcquisitions(ss, 1)
	s.sessions[""] = ss
	ask := func(id string) error {
		_, err := ss.acquisitions.callWith(t.Context(), requestOf(id), func(context.Context, func(recipes.Place)) (*grant, error) {
			return &grant{Grant: removed{}}, nil
		})
		return err
	}
	if err := ask(""); !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("without a request id: %v", err)
	}
	must.Do(t, ask("it"))
	services := service{Server: s}
	_, ack := services.AcknowledgeElement(t.Context(), &pb.AcknowledgeElementRequest{RequestId: "it"})
	_, leave := services.LeaveDoubleBarrier(t.Context(), &pb.LeaveDoubleBarrierRequest{RequestId: "it"})
	_, receive := services.Acquire(t.Context(), &pb.AcquireRequest{RequestId: "it", Recipe: &pb.AcquireRequest_Queue{}})
	_, enter := services.Acquire(t.Context(), &pb.AcquireRequest{RequestId: "it", Recipe: &pb.AcquireRequest_DoubleBarrier{}})
	_, slot := services.Acquire(t.Context(), &pb.AcquireRequest{RequestId: "it", Recipe: &pb.AcquireRequest_Slots{}})
	_, revoke := services.Revoke(t.Context(), &pb.RevokeRequest{Kind: "lock"})
	for what, err := range map[string]error{"ack": ack, "leave": leave, "receive": receive, "enter": enter, "slot": slot, "revoke": revoke} {
		if !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The mode is checked with try too.
func TestUnknownModeIsRefused(t *testing.T) {
	wait, try := inMode[recipes.SharedHold](struct{ recipes.SharedLock }{}, pb.Mode_MODE_UNSPECIFIED)
	for _, acquire := range []func(context.Context) (recipes.SharedHold, error){wait, try} {
		if _, err := acquire(t.Context()); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
	}
}

// A newer host's recipe is refused, and the error names its field. A request is also refused if it
// has no recipe, or a try or a dialect that its recipe does not have.
func TestAnImpossibleAcquireIsRefused(t *testing.T) {
	newer := &pb.AcquireRequest{RequestId: "it"}
	newer.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 90, protowire.BytesType), nil))
	for _, test := range []struct {
		r    *pb.AcquireRequest
		want error
		says string
	}{
		{newer, recipes.ErrUnsupported, "field 90 "},
		{&pb.AcquireRequest{}, recipes.ErrInvalid, "no recipe"},
		{&pb.AcquireRequest{Try: true, Recipe: &pb.AcquireRequest_Election{}}, recipes.ErrInvalid, "no try"},
		{&pb.AcquireRequest{Try: true, Recipe: &pb.AcquireRequest_Group{}}, recipes.ErrInvalid, "no try"},
		{&pb.AcquireRequest{Try: true, Recipe: &pb.AcquireRequest_Names{}}, recipes.ErrInvalid, "no try"},
		{&pb.AcquireRequest{Try: true, Recipe: &pb.AcquireRequest_Queue{}}, recipes.ErrInvalid, "no try"},
		{&pb.AcquireRequest{Try: true, Recipe: &pb.AcquireRequest_DoubleBarrier{}}, recipes.ErrInvalid, "no try"},
		{&pb.AcquireRequest{Dialect: "kazoo", Recipe: &pb.AcquireRequest_Names{}}, recipes.ErrInvalid, "no dialect kazoo"},
		{&pb.AcquireRequest{Dialect: "kazoo", Recipe: &pb.AcquireRequest_PriorityLock{}}, recipes.ErrInvalid, "no dialect kazoo"},
	} {
		s := New(Config{})
		ss := &session{ctx: t.Context(), Client: opening{}}
		ss.acquisitions = newAcquisitions(ss, 1)
		s.sessions[""] = ss
		test.r.RequestId = "it"
		_, err := service{Server: s}.Acquire(t.Context(), test.r)
		err, _ = wire.Error(toStatus(err))
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v: %v", test.r, err)
		}
	}
}

// acquire knows each recipe of AcquireRequest. The plugin's capabilities name all of them.
func TestEachRecipeOfARequestIsKnown(t *testing.T) {
	_, dial := zktest.Piped(t)
	opened := must.Get(dial.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}}))(t)
	defer opened.Close(t.Context())
	nowhere := target{session: &session{ctx: t.Context(), Client: opened}, path: "no slash"}
	cases := new(pb.AcquireRequest).ProtoReflect().Descriptor().Oneofs().ByName("recipe").Fields()
	for i := range cases.Len() {
		r := new(pb.AcquireRequest)
		r.ProtoReflect().Set(cases.Get(i), r.ProtoReflect().NewField(cases.Get(i)))
		if _, err := acquire(t.Context(), nowhere, r, nil); err == nil || strings.Contains(err.Error(), "AcquireRequest") {
			t.Errorf("%s: %v", cases.Get(i).Name(), err)
		}
	}
}

// opening is a session whose recipes do nothing.
type opening struct{ recipes.Client }

func (opening) Election(string, recipes.ElectionConfig) (recipes.Election, error) {
	return struct{ recipes.Election }{}, nil
}
func (opening) Group(string, recipes.GroupConfig) (recipes.Group, error) {
	return struct{ recipes.Group }{}, nil
}
func (opening) Names(string) (recipes.Names, error) { return struct{ recipes.Names }{}, nil }
func (opening) Queue(string, recipes.QueueConfig) (recipes.Queue, error) {
	return struct{ recipes.Queue }{}, nil
}
func (opening) DoubleBarrier(string, recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	return struct{ recipes.DoubleBarrier }{}, nil
}

// placed is a lock with a place that can be resumed.
type placed struct{ try *bool }

func (p placed) ResumeWaiting(_ context.Context, _ string, try bool) (recipes.Hold, error) {
	*p.try = try
	return nil, recipes.ErrContended
}

// A resumed TryAcquire does not wait in the next plugin either.
func TestATryIsResumedAsATry(t *testing.T) {
	for _, try := range []bool{false, true} {
		got := !try
		r := &pb.AcquireRequest{Try: try, Resumed: &pb.Grant{Znode: "/l/z"}}
		_, err := grantOf[recipes.Hold](t.Context(), r, placed{&got}, nil, nil, nil)
		if got != try || !errors.Is(err, recipes.ErrContended) {
			t.Errorf("try %v: %v, %v", try, got, err)
		}
	}
}

func (resumedTransaction) Join(context.Context, string) (recipes.Site, error) {
	return joinedSite{}, nil
}

// A host that forgets to finish its sites does not fill the memory. A resumed site is not
// refused: the plugin in which it joined has counted it.
func TestSitesAreBounded(t *testing.T) {
	ss := &session{Client: cutting{breaks: func() {}}, resumption: resumption{resumed: true}}
	ss.acquisitions = newAcquisitions(ss, 1)
	join := func(resumed string) (string, error) {
		_, membership, err := ss.joinTransaction(t.Context(), resumedTransaction{c: ss.Client.(cutting)}, &pb.JoinTransactionRequest{Resumed: resumed})
		return membership, err
	}
	first := must.Get(join(""))(t)
	if _, err := join(""); !errors.Is(err, recipes.ErrLimit) {
		t.Errorf("a second site: %v", err)
	}
	if _, err := join("it"); err != nil {
		t.Errorf("a resumed site: %v", err)
	}
	ss.memberships.finish("it")
	ss.memberships.finish(first)
	if !ss.memberships.hasFinished(first) {
		t.Error("a repeated FinishSite would find no membership")
	}
	if _, err := join(""); err != nil {
		t.Errorf("after the end of the others: %v", err)
	}
}

type leaving struct{ recipes.Passage }

func (leaving) Leave(ctx context.Context) error { return ctx.Err() }

// A member that is removed from a double barrier does not wait for the others.
func TestARemovedMemberDoesNotWait(t *testing.T) {
	if err := leaveAtOnce(t.Context(), leaving{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it leaves with %v", err)
	}
}

// dropped counts the calls of its DropRest.
type dropped struct {
	recipes.Client
	times *int
}

func (d dropped) DropRest(context.Context) error { *d.times++; return nil }
func (dropped) Detach(context.Context) error     { return nil }
func (dropped) ResumeTicket() []byte             { return nil }

// DropRest ends the resumption. A second DropRest would delete what the session has acquired
// since.
func TestDropRestEndsTheResumption(t *testing.T) {
	s := New(Config{Resume: func(context.Context, recipes.SessionConfig, []byte, time.Time) (recipes.Client, error) {
		return nil, nil
	}})
	times := 0
	ss := &session{Client: dropped{times: &times}, resumption: resumption{resumed: true}}
	s.sessions["it"] = ss
	for range 2 {
		must.Get(service{Server: s}.DropRest(t.Context(), &pb.DropRestRequest{Session: "it"}))(t)
		if err := ss.resumption.allows(&pb.Grant{}); !errors.Is(err, errTooLate) {
			t.Errorf("a resumed contender after DropRest: %v", err)
		}
	}
	if times != 1 {
		t.Errorf("its rest was deleted %d times", times)
	}
}
