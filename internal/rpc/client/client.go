// Package client has the stubs of the recipes: they implement the contract (package recipes) over
// the calls of package link, which internal/rpc/server answers. This package is all that the author
// of a recipe reads.
//
// Order of use: [New] with a connection, Open of the returned client for each session, and Close
// before the connection is closed.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var contenderService = pb.NewContenderServiceClient(link.Router{})

// New returns a client over one connection, on the terms of Connect of link.Client.
func New(over grpc.ClientConnInterface, dial carry.Dialer) *link.Client {
	c := Unconnected()
	c.Use(c.Connect(over, dial, nil), false)
	return c
}

// Unconnected returns a client that can open sessions after the first Use.
func Unconnected() *link.Client {
	return link.New(func(s *link.Session) recipes.Client { return &session{Session: s} })
}

// session has a method for each recipe.
type session struct {
	*link.Session
	received received // takes that were answered
}

// A recipe is the common part of all recipes' stubs. Its calls are those of package link.
type recipe struct {
	s       *link.Session
	path    string
	what    string // in errors: "lock /path"
	dialect string // in wire form, see wire.ToDialect
	invalid error  // why the name or the key of the call cannot be used
}

// at checks a path and a dialect, and returns the recipe for them. invalid are the errors of the
// rest of the configuration.
func (s *session) at(kind, path string, d recipes.Dialect, invalid ...error) (recipe, error) {
	r := recipe{s: s.Session, path: path, what: kind + " " + path}
	err := recipes.ValidatePath(path)
	if err != nil {
		return r, err
	}
	r.dialect, err = wire.ToDialect(d)
	if err = cmp.Or(append([]error{err}, invalid...)...); err != nil {
		return r, fmt.Errorf("%s: %w", r, err)
	}
	return r, nil
}

// normalize sets a default strategy.
func normalize(s *recipes.Strategy) (err error) {
	*s, err = s.Normalize()
	return err
}

// notRoot returns an error with the reason if the path is the root.
func notRoot(path, reason string) error {
	if path != "/" {
		return nil
	}
	return fmt.Errorf("%w: %s", recipes.ErrInvalid, reason)
}

func (r recipe) Path() string     { return r.path }
func (r recipe) SessionID() int64 { return r.s.ID() }
func (r recipe) String() string   { return r.what }

// about returns the recipe with another name in errors.
func (r recipe) about(what string) recipe { r.what = what; return r }

// nothing converts an empty answer.
func nothing[A any](A) struct{} { return struct{}{} }

// read makes a call by link.Read, and converts the answer. On error the result is zero.
func read[Q, A, T any](ctx context.Context, r recipe, method link.Method[Q, A], request Q, convert func(A) T) (none T, err error) {
	if r.invalid != nil {
		return none, r.invalid
	}
	answer, err := link.Read(ctx, r.s, r.what, method, request)
	if err != nil {
		return none, err
	}
	return convert(answer), nil
}

// write makes a call by link.Write, and converts the answer. On error the result is zero.
func write[Q, A, T any](ctx context.Context, r recipe, options link.Options, method link.Method[Q, A], request Q, convert func(A) T) (none T, err error) {
	if r.invalid != nil {
		return none, r.invalid
	}
	answer, err := link.Write(ctx, r.s, r.what, options, method, request)
	if err != nil {
		return none, err
	}
	return convert(answer), nil
}

// change makes a write without a result.
func change[Q, A any](ctx context.Context, r recipe, options link.Options, method link.Method[Q, A], request Q) error {
	_, err := write(ctx, r, options, method, request, nothing)
	return err
}

// follow opens a stream of values by link.Stream.
func follow[Q, M, T any](ctx context.Context, r recipe, open link.Method[Q, grpc.ServerStreamingClient[M]], request Q, value func(*M) T) (<-chan T, error) {
	if r.invalid != nil {
		return nil, r.invalid
	}
	return link.Stream(ctx, r.s, r.what, open, request, value)
}

// acquire asks for a grant by Session.Acquire: request has the data, the try and the recipe. name is the
// recipe's in the metrics.
func (r recipe) acquire(ctx context.Context, name string, request *pb.AcquireRequest, joined func(recipes.Place)) (*link.Grant, *pb.AcquireResponse, error) {
	if r.invalid != nil {
		return nil, nil, r.invalid
	}
	request.Path, request.Dialect = r.path, r.dialect
	return r.s.Acquire(ctx, r.what, name, request, joined)
}

func (s *session) Contenders(ctx context.Context, path string, kinds ...recipes.Kind) (recipes.Lines, error) {
	err := recipes.ValidatePath(path)
	for _, k := range kinds {
		err = errors.Join(err, k.Validate())
	}
	if err != nil {
		return recipes.Lines{}, err
	}
	return read(ctx, recipe{s: s.Session, what: "contenders at " + path}, contenderService.Contenders,
		&pb.ContendersRequest{Session: s.Handle(), Path: path, Kinds: wire.Strings[string](kinds)}, wire.Lines)
}

func (s *session) Children(ctx context.Context, path string) ([]string, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	return read(ctx, recipe{s: s.Session, what: "children of " + path}, contenderService.Children,
		&pb.ChildrenRequest{Session: s.Handle(), Path: path}, (*pb.ChildrenResponse).GetNames)
}

// line returns the contenders of one kind at the path, in the recipe's dialect.
func (r recipe) line(ctx context.Context, kind recipes.Kind) ([]recipes.Contender, error) {
	return read(ctx, r.about("contenders at "+r.path), contenderService.Contenders, &pb.ContendersRequest{
		Session: r.s.Handle(), Path: r.path, Kinds: []string{string(kind)}, Dialect: cmp.Or(r.dialect, string(recipes.ZooKeeper)),
	}, func(a *pb.ContendersResponse) []recipes.Contender {
		return wire.Each(a.GetContenders(), wire.Contender)
	})
}
