package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// An acquisition is a call for one grant or for several. It is made again if its plugin ends.
type acquisition struct {
	*pendingCall
	s        *Session
	what, id string
	asked    time.Time

	// Of Acquire:
	request *pb.AcquireRequest
	answer  *pb.AcquireResponse
}

// newAcquisition adds c to the session's pending calls. The caller calls removePending.
func (s *Session) newAcquisition(what, id string, c *pendingCall) *acquisition {
	s.addPending(id, c)
	return &acquisition{pendingCall: c, s: s, what: what, id: id, asked: time.Now()}
}

// Acquire asks for a grant, and returns the grant and the answer. request is new, with the path, the
// dialect, the data, the try and the recipe; Acquire sets the rest. what is the operation in errors,
// and name the recipe in the metrics. On error, no contender and no grant is left behind:
// if the plugin has not answered, the session abandons the request id in the background until the
// plugin confirms.
//
// If joined is not nil, Acquire calls it exactly once, as soon as the answer, or an early part of
// it, delivers the place. If the plugin ends and the session continues, the call is repeated. A
// contender whose place is known keeps it.
func (s *Session) Acquire(ctx context.Context, what, name string, request *pb.AcquireRequest, joined func(recipes.Place)) (*Grant, *pb.AcquireResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", what, err)
	}
	// Others may enter with a member of a double barrier before its place is known here.
	unplaced := s.resumable && request.GetDoubleBarrier() != nil
	a := s.newAcquisition(what, s.RequestID(), newPendingCall(joined, unplaced))
	a.request = request
	request.Session, request.RequestId = s.handle, a.id
	defer func() {
		s.removePending(a.id, a.pendingCall) // must come first: until then the next plugin does not serve the session, and joined may make a call of it
		a.notifying.Wait()
	}()
	for {
		err := s.call(ctx, Options{pending: a.pendingCall, abandonID: a.id}, a.call)
		if e, answered := wire.Error(err); answered && a.resumed != nil && (errors.Is(e, recipes.ErrUnsupported) || request.GetTry() && errors.Is(e, recipes.ErrRemoved)) {
			continue // the place was lost, or the try has given it up: join again
		}
		if err != nil {
			return nil, nil, s.explain(ctx, what, err)
		}
		g := s.newGrant(name, request, a.answer.GetGrant())
		if late, err := a.admit(ctx, g); err != nil {
			return nil, nil, err
		} else if !late {
			return g, a.answer, nil
		}
	}
}

// AcquireMany asks for several grants by one call, and returns the grants and the answer. id is the
// request id of request. For each grant of an answer, granted returns a new AcquireRequest with a
// request id of its own, whose Resumed is the grant. Later requests name the grant by that id, and
// the next plugin resumes it by that request. what and name are as for Acquire. On error, no grant
// is left behind.
//
// If the plugin ends and the session continues, the call is repeated: DropRest has released what it
// had granted.
func AcquireMany[Q, A any](ctx context.Context, s *Session, what, name, id string, method Method[Q, A], request Q, granted func(A) []*pb.AcquireRequest) ([]*Grant, A, error) {
	a := s.newAcquisition(what, id, newPendingCall(nil, false))
	defer s.removePending(id, a.pendingCall)
	for {
		var answer, none A
		err := s.call(ctx, Options{pending: a.pendingCall, abandonID: id}, func(ctx context.Context) (err error) { answer, err = method(ctx, request); return err })
		if err != nil {
			return nil, none, s.explain(ctx, what, err)
		}
		var grants []*Grant
		for _, r := range granted(answer) {
			grants = append(grants, s.newGrant(name, r, r.GetResumed()))
		}
		if late, err := a.admit(ctx, grants...); err != nil {
			return nil, none, err
		} else if !late {
			return grants, answer, nil
		}
	}
}

// newGrant returns what a plugin has granted for a request.
func (s *Session) newGrant(name string, request *pb.AcquireRequest, granted *pb.Grant) *Grant {
	return &Grant{
		s: s, id: request.GetRequestId(), recipe: name, request: request, lost: make(chan struct{}),
		token: recipes.Token(granted.GetToken()), znode: granted.GetZnode(),
	}
}

// admit makes the session hold the grants of an answer. On error, none is left behind. If they are
// late, the call must be made again: see holdGrants.
func (a *acquisition) admit(ctx context.Context, grants ...*Grant) (late bool, err error) {
	if err := a.s.awaitProof(ctx); err != nil {
		a.s.Abandon(a.id)
		return false, a.s.explain(ctx, a.what, err)
	}
	if len(grants) == 0 || slices.ContainsFunc(grants, func(g *Grant) bool { return g.token <= 0 || g.znode == "" }) {
		a.s.Abandon(a.id)
		return false, fmt.Errorf("%s: %w: the plugin's answer has no grant", a.what, recipes.ErrInternal)
	}
	late, err = a.s.holdGrants(a.pendingCall, grants...)
	if late {
		return true, nil
	}
	for _, g := range grants {
		a.s.client.meters.Granted(ctx, g.recipe, time.Since(a.asked))
		if err != nil { // the session's end releases it
			g.Lose(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
		}
	}
	if err != nil {
		return false, fmt.Errorf("%s: granted too late: %w", a.what, err)
	}
	return false, nil
}

// call makes the call. Only its goroutine sets a.on and a.resumed, so mu is not needed to read
// them.
func (a *acquisition) call(ctx context.Context) (err error) {
	if a.joined != nil || a.s.resumable { // the next plugin may have to resume the contender
		ctx = carry.WithEarly(ctx, a.read)
	}
	a.answer, err = a.s.client.grants.Acquire(ctx, resuming(a.request, a.resumed))
	return err
}

// read reads the place from what has arrived of the answer.
func (a *acquisition) read(part proto.Message) {
	if p := part.(*pb.AcquireResponse).GetPlace(); p != nil {
		a.s.placed(a.pendingCall, wire.Place(p))
	}
}

// resuming returns a request that resumes the place or the grant of a request. If resumed is nil, it
// returns the request itself.
func resuming(request *pb.AcquireRequest, resumed *pb.Grant) *pb.AcquireRequest {
	if resumed == nil {
		return request
	}
	request = proto.CloneOf(request)
	request.Resumed = resumed
	return request
}

// Abandon cancels the request with that id in the plugin, in the background.
func (s *Session) Abandon(id string) {
	s.Spawn(func() { // it does not run once the session is over: no grant is left then
		_, _, _ = Persist(s, s.client.grants.Abandon, &pb.AbandonRequest{Session: s.handle, RequestId: id})
	})
}

// holdGrants records the grants of a call, so that the end of the session ends them too. They are
// late if their plugin has ended, and the next one has already resumed the session's other grants.
// DropRest deletes the znodes of late grants.
func (s *Session) holdGrants(c *pendingCall, grants ...*Grant) (late bool, err error) {
	s.checkClock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return false, s.err
	case c.at != s.owner && c.at != s.resuming:
		return true, nil
	}
	for _, g := range grants {
		g.at = c.at
		s.held[g.id], s.owned[g.id] = g, g
	}
	s.clock.hold(true)
	return false, nil
}

// removeGrant removes a grant that has ended and returns it, or nil if it was removed before.
func (s *Session) removeGrant(id string) *Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owned, id)
	return s.endGrant(id)
}

// endGrant removes a grant from those that are held. The caller holds mu.
func (s *Session) endGrant(id string) *Grant {
	g := s.held[id]
	delete(s.held, id)
	s.clock.hold(len(s.held) > 0)
	return g
}
