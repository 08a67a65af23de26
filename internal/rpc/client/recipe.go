package client

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A recipe is what the stubs of all recipes have in common. They make calls in three ways:
//
//   - read is for a call that may be repeated.
//   - write makes a call once. Its outcome may be unknown.
//   - acquire asks for a grant, by a request id, and can be abandoned.
type recipe struct {
	s       *session
	path    string
	what    string // in errors: "lock /path"
	dialect string // as wire.ToDialect has it
}

// at checks what the recipes at a path have in common.
func (s *session) at(kind, path string, d recipes.Dialect) (recipe, error) {
	r := recipe{s: s, path: path, what: kind + " " + path}
	err := recipes.ValidatePath(path)
	if err != nil {
		return r, err
	}
	if r.dialect, err = wire.ToDialect(d); err != nil {
		return r, fmt.Errorf("%s: %w", r, err)
	}
	return r, nil
}

func (r recipe) Path() string   { return r.path }
func (r recipe) String() string { return r.what }

// about is the recipe for a call whose errors name something else.
func (r recipe) about(what string) recipe { r.what = what; return r }

// speaks fails if the plugin does not read the dialect.
func (r recipe) speaks(ctx context.Context) error { return r.s.hasDialect(ctx, r.what, r.dialect) }

// A method is that of a service of the plugin's.
type method[Q, A any] = func(context.Context, Q, ...grpc.CallOption) (A, error)

// read makes a call that only asks for its answer. On error the result is zero.
func read[Q, A, T any](ctx context.Context, r recipe, call method[Q, A], request Q, convert func(A) T) (none T, err error) {
	if err := r.speaks(ctx); err != nil {
		return none, err
	}
	answer, err := query(ctx, r.s, r.what, func(ctx context.Context) (A, error) { return call(ctx, request) })
	if err != nil {
		return none, err
	}
	return convert(answer), nil
}

// write makes a call that changes something, once: see session.change. On error the result
// is zero.
func write[Q, A, T any](ctx context.Context, r recipe, call method[Q, A], request Q, convert func(A) T) (none T, err error) {
	if err := r.speaks(ctx); err != nil {
		return none, err
	}
	var answer A
	err = r.s.change(ctx, r.what, func(ctx context.Context) (err error) { answer, err = call(ctx, request); return err })
	if err != nil {
		return none, err
	}
	return convert(answer), nil
}

// nothing converts an answer that says nothing.
func nothing[A any](A) struct{} { return struct{}{} }

// acquire makes a call that asks for a grant, by the name of its capability: see
// session.contend.
func (r recipe) acquire(ctx context.Context, capability string, joined func(recipes.Place), run attempt) (*grant, error) {
	if err := r.speaks(ctx); err != nil {
		return nil, err
	}
	return r.s.contend(ctx, capability, r.what, joined, run)
}

// follow opens a stream of values: see watch.
func follow[Q, M, T any](ctx context.Context, r recipe, open method[Q, grpc.ServerStreamingClient[M]], request Q, value func(*M) T) (<-chan T, error) {
	if err := r.speaks(ctx); err != nil {
		return nil, err
	}
	return watch(ctx, r.s, r.what, func(ctx context.Context) (grpc.ServerStreamingClient[M], error) { return open(ctx, request) }, value)
}
