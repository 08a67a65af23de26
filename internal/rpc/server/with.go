package server

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A target is what a request refers to: a session, and the path and the dialect of a recipe.
type target struct {
	*session
	path    string
	dialect recipes.Dialect
}

type sessionRequest interface{ GetSession() string }

func (s *Server) target(r sessionRequest) (t target, err error) {
	if t.session, err = s.session(r.GetSession()); err != nil {
		return t, err
	}
	if r, ok := r.(interface{ GetPath() string }); ok {
		t.path = r.GetPath()
	}
	if r, ok := r.(interface{ GetDialect() string }); ok {
		t.dialect, err = wire.Dialect(r.GetDialect())
	}
	return t, err
}

// with opens the recipe of a request and calls do with it.
func with[R, A any](s *Server, r sessionRequest, open func(target) (R, error), do func(R) (A, error)) (none A, err error) {
	t, err := s.target(r)
	if err != nil {
		return none, err
	}
	recipe, err := open(t)
	if err != nil {
		return none, err
	}
	return do(recipe)
}

// do does the same as with, for a call without a result.
func do[R any](s *Server, r sessionRequest, open func(target) (R, error), call func(R) error) error {
	_, err := with(s, r, open, func(recipe R) (struct{}, error) { return struct{}{}, call(recipe) })
	return err
}

// withAbandonable does the same as with, for a call that may wait long and change something: see
// untilAbandoned.
func withAbandonable[R, A any](ctx context.Context, s *Server, r request, open func(target) (R, error), do func(context.Context, *session, R) (A, error)) (A, error) {
	var ss *session
	return with(s, r, func(t target) (R, error) { ss = t.session; return open(t) }, func(recipe R) (A, error) {
		ctx, end := ss.untilAbandoned(ctx, r)
		defer end()
		return do(ctx, ss, recipe)
	})
}

// withGrant finds the grant that a request refers to, and calls do with it as a G. If the grant
// is not a G, the error text ends with what: "request 1 holds no element". If do's error means
// that the grant has ended, withGrant finishes the acquisition.
func withGrant[G any](s *Server, r request, what string, do func(*session, *acquisition, G) error) error {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return err
	}
	c, err := ss.acquisitions.granted(r.GetRequestId())
	if err != nil {
		return err
	}
	g, err := as[G](c, what)
	if err != nil {
		return err
	}
	err = do(ss, c, g)
	ss.acquisitions.finishIfGone(c, err)
	return err
}

// as returns an acquisition's grant as a G.
func as[G any](c *acquisition, what string) (G, error) {
	g, ok := c.grant.Grant.(G)
	if !ok {
		return g, fmt.Errorf("%w: request %s holds %s", recipes.ErrInvalid, c.id, what)
	}
	return g, nil
}

// watch does the same as with, for a watch. It sends the values until the stream or the session ends.
func watch[R, T, M any](s *Server, r sessionRequest, st grpc.ServerStreamingServer[M], open func(target) (R, error), values func(R) (<-chan T, error), message func(T) *M) error {
	all, err := with(s, r, open, values)
	if err != nil {
		return err
	}
	for v := range all {
		if err := st.Send(message(v)); err != nil {
			return err
		}
	}
	return nil
}

// abandonable returns a context that also ends when id is abandoned. It is used for calls that
// ask for no grant. A host that cancels such a call gets no answer. A host that abandons it
// gets the outcome. If id is empty, only ctx and the returned function end the context.
func (a *acquisitions) abandonable(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	if id == "" {
		return ctx, end
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.all[id]; known { // Abandon has arrived before the call
		end()
		return ctx, end
	}
	a.cancels[id] = end
	return ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.cancels, id)
		end()
	}
}

// undoable makes Abandon of id run undo. The call has succeeded, but its answer may still be
// lost. ctx is the call's. If it has ended, undo runs now, and undoable returns the error for
// the answer, which the host reads after Abandon.
func (a *acquisitions) undoable(ctx context.Context, id string, undo func()) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		a.background(undo)
		return fmt.Errorf("%w: it was done, and then given up: %w", recipes.ErrUnknownOutcome, ctx.Err())
	case id != "":
		a.undos[id] = undo
		a.undoIDs = append(a.undoIDs, id)
		if len(a.undoIDs) > remembered {
			delete(a.undos, a.undoIDs[0])
			a.undoIDs = a.undoIDs[1:]
		}
	}
	return nil
}

// background runs f in a goroutine of the session. It does nothing if the session is ending,
// because that undoes everything. The caller holds mu.
func (a *acquisitions) background(f func()) {
	if !a.closed {
		a.ss.tasks.Go(f)
	}
}

// answerTime bounds the time that an answer takes to reach the host.
const answerTime = 250 * time.Millisecond

// withTimeToAnswer returns ctx with a deadline slightly before its own. It is used for calls
// that wait and are never repeated. At the caller's deadline gRPC fails the call in the host,
// and its outcome is then unknown. A call that ends before that can still report its outcome.
func withTimeToAnswer(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ends := ctx.Deadline()
	if !ends {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end.Add(-min(answerTime, time.Until(end)/4)))
}

// untilAbandoned returns the context of a call that may wait long and change something. It ends when
// the call is abandoned, and slightly before the call's deadline, so that an answer can
// report the outcome.
func (ss *session) untilAbandoned(ctx context.Context, r interface{ GetRequestId() string }) (context.Context, context.CancelFunc) {
	ctx, end := ss.acquisitions.abandonable(ctx, r.GetRequestId())
	ctx, cancel := withTimeToAnswer(ctx)
	return ctx, func() { cancel(); end() }
}
