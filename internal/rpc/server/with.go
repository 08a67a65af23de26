package server

import (
	"context"
	"fmt"

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

// sessionRequest is a request of a call in a session.
type sessionRequest interface{ GetSession() string }

// target returns the target of a request.
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

// patiently does the same as with, for a call that may wait long and change something: see
// patient.
func patiently[R, A any](ctx context.Context, s *Server, r request, open func(target) (R, error), do func(context.Context, *session, R) (A, error)) (A, error) {
	var ss *session
	return with(s, r, func(t target) (R, error) { ss = t.session; return open(t) }, func(recipe R) (A, error) {
		ctx, end := ss.patient(ctx, r)
		defer end()
		return do(ctx, ss, recipe)
	})
}

// withGrant finds the grant that a request refers to, and calls do with it as a G. If the grant
// is not a G, the error text ends with what: "request 1 holds no element". If do's error means
// that the grant has ended, withGrant finishes the acquisition.
func withGrant[G, A any](s *Server, r request, what string, do func(*session, *acquisition, G) (A, error)) (none A, err error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return none, err
	}
	c, err := ss.acquisitions.granted(r.GetRequestId())
	if err != nil {
		return none, err
	}
	g, err := as[G](c, what)
	if err != nil {
		return none, err
	}
	answer, err := do(ss, c, g)
	ss.acquisitions.judge(c, err)
	return answer, err
}

// as returns an acquisition's grant as a G.
func as[G any](c *acquisition, what string) (G, error) {
	g, ok := c.grant.Grant.(G)
	if !ok {
		return g, fmt.Errorf("%w: request %s holds %s", recipes.ErrInvalid, c.id, what)
	}
	return g, nil
}

// forward sends the values of a watch until the stream or the session ends. err is the error
// of the watch's first read.
func forward[T, M any](st grpc.ServerStreamingServer[M], values <-chan T, err error, message func(T) *M) error {
	if err != nil {
		return err
	}
	for v := range values {
		if err := st.Send(message(v)); err != nil {
			return err
		}
	}
	return nil
}
