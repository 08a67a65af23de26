package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A runner waits for the grant of a request. If the recipe has a wait queue, it calls joined
// once.
type runner = func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error)

func (s service) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	run, err := runnerOf(r)
	if err != nil {
		return nil, err
	}
	return s.contend(ctx, r, run)
}

// runnerOf is the table of the recipes that make grants. An unknown recipe comes from a newer
// host.
func runnerOf(r *pb.AcquireRequest) (runner, error) {
	switch m := r.GetRecipe().(type) {
	case *pb.AcquireRequest_Lock:
		return lockRunner(r, m.Lock), nil
	case *pb.AcquireRequest_SharedLock:
		return sharedLockRunner(r, m.SharedLock), nil
	case *pb.AcquireRequest_PriorityLock:
		return priorityLockRunner(r, m.PriorityLock), nil
	case *pb.AcquireRequest_Semaphore:
		return semaphoreRunner(r, m.Semaphore), nil
	case *pb.AcquireRequest_Slots:
		return slotsRunner(r, m.Slots), nil
	case *pb.AcquireRequest_Election:
		return electionRunner(r, m.Election), nil
	case *pb.AcquireRequest_Group:
		return groupRunner(r, m.Group), nil
	case *pb.AcquireRequest_Names:
		return namesRunner(r, m.Names), nil
	case *pb.AcquireRequest_Queue:
		return queueRunner(r), nil
	case *pb.AcquireRequest_DoubleBarrier:
		return doubleBarrierRunner(r, m.DoubleBarrier), nil
	}
	return nil, unknownRecipe(r)
}

// unknownRecipe returns the error for a request without a recipe that the plugin knows. The plugin
// knows only the field's number.
func unknownRecipe(r *pb.AcquireRequest) error {
	var fields []string
	for b := r.ProtoReflect().GetUnknown(); len(b) > 0; {
		number, _, n := protowire.ConsumeField(b)
		if n < 0 {
			break
		}
		fields, b = append(fields, strconv.Itoa(int(number))), b[n:]
	}
	if fields == nil {
		return fmt.Errorf("%w: AcquireRequest has no recipe", recipes.ErrInvalid)
	}
	return fmt.Errorf("%w: the recipe in field %s of AcquireRequest; a newer plugin may know it", recipes.ErrUnsupported, strings.Join(fields, ", "))
}

// contend waits for the grant of a request, or joins the call that already waits for it. If it
// fails after a contender has joined, the error contains the place, because the host passes it to
// the application in any case.
func (s *Server) contend(ctx context.Context, r *pb.AcquireRequest, run runner) (*pb.AcquireResponse, error) {
	t, err := s.target(r)
	if err != nil {
		return nil, err
	}
	resumed := r.GetResumed()
	if err := t.resumption.allows(resumed); err != nil && !t.acquisitions.knows(r.GetRequestId()) {
		return nil, err
	}
	c, err := t.acquisitions.call(ctx, r.GetRequestId(), resumed.GetToken() != 0, t.announcer(ctx, r), func(ctx context.Context, joined func(recipes.Place)) (_ *grant, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = logPanic(p, s.rpcLog(), "an acquirer")
			}
		}()
		return run(ctx, t, joined)
	})
	if c == nil {
		return nil, err
	}
	if err != nil {
		if resumed != nil {
			t.acquisitions.retry(c)
		}
		return nil, wire.ToStatus(err, c.place)
	}
	return response(r, c)
}

// response returns the answer to a request: the grant, and what its recipe adds. The grant must be
// the recipe's, because a host may use a request id twice.
func response(r *pb.AcquireRequest, c *acquisition) (*pb.AcquireResponse, error) {
	a := &pb.AcquireResponse{Grant: &pb.Grant{Token: int64(c.grant.Token()), Znode: c.grant.Znode()}}
	if c.place != nil {
		a.Place = wire.ToPlace(*c.place)
	}
	switch r.GetRecipe().(type) {
	case *pb.AcquireRequest_Slots:
		h, err := as[recipes.SlotHold](c, "no slot")
		if err != nil {
			return nil, err
		}
		a.Recipe = &pb.AcquireResponse_Slot{Slot: int32(h.Slot())}
	case *pb.AcquireRequest_Queue:
		d, err := as[recipes.Delivery](c, noElement)
		if err != nil {
			return nil, err
		}
		a.Recipe = &pb.AcquireResponse_Delivery{Delivery: &pb.Delivery{Element: wire.ToElement(d.Element()), Attempt: int32(d.Attempt())}}
	case *pb.AcquireRequest_DoubleBarrier:
		p, err := as[recipes.Passage](c, noPassage)
		if err != nil {
			return nil, err
		}
		a.Recipe = &pb.AcquireResponse_Entered{Entered: &pb.Entered{Members: p.Members()}}
	}
	return a, nil
}

// announcer returns how the host is notified of the place: by an early part of the answer, or
// else on the session's stream. It returns nil if the request asks for no notice. The answer has
// the place in any case. If the contender is first in the queue, no early part is sent, because the
// answer follows soon. A member of a double barrier waits for others whatever its place is.
func (ss *session) announcer(ctx context.Context, r *pb.AcquireRequest) func(recipes.Place) {
	early, entering := carry.Early(ctx), r.GetDoubleBarrier() != nil
	switch {
	case !r.GetAnnounce():
		return nil
	case early == nil:
		return func(p recipes.Place) {
			joined := &pb.Joined{RequestId: r.GetRequestId(), Place: wire.ToPlace(p)}
			ss.out.put(&pb.OpenResponse{Message: &pb.OpenResponse_Joined{Joined: joined}})
		}
	}
	return func(p recipes.Place) {
		if p.Position != 0 || entering {
			early(wire.ToEarlyPlace(p))
		}
	}
}

// granting returns a runner that opens the recipe and asks it for a grant, or resumes the grant or
// the place that r names.
func granting[R any, G recipes.Grant](r *pb.AcquireRequest, open func(t target, joined func(recipes.Place)) (R, error),
	ask func(R, context.Context) (G, error), release func(G, context.Context) error) runner {
	return func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error) {
		recipe, err := open(t, joined)
		if err != nil {
			return nil, err
		}
		var g G
		if resumed := r.GetResumed(); resumed == nil {
			g, err = ask(recipe, ctx)
		} else {
			g, err = resumeGrant[G](ctx, recipe, resumed, r.GetTry())
		}
		return &grant{
			Grant:        g,
			release:      func(ctx context.Context) error { return release(g, ctx) },
			endsWithHost: r.GetElection().GetEndsWithHost() || r.GetGroup().GetEndsWithHost(),
		}, err
	}
}

// either returns the method that a request calls: one that waits, or one that only tries.
func either[R, G any](r *pb.AcquireRequest, wait, try func(R, context.Context) (G, error)) func(R, context.Context) (G, error) {
	if r.GetTry() {
		return try
	}
	return wait
}

// waiting returns the method of a recipe that cannot try.
func waiting[R, G any](r *pb.AcquireRequest, wait func(R, context.Context) (G, error)) func(R, context.Context) (G, error) {
	return either(r, wait, func(R, context.Context) (none G, err error) {
		return none, fmt.Errorf("%w: the recipe has no try", recipes.ErrInvalid)
	})
}

// plain returns an error if a request names a dialect other than the default. Its recipe has no
// other.
func (t target) plain() error {
	if t.dialect != "" && t.dialect != recipes.ZooKeeper {
		return fmt.Errorf("%w: the recipe has no dialect %s", recipes.ErrInvalid, t.dialect)
	}
	return nil
}
