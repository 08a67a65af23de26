package client

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// change makes a call that is never repeated, because what it does may not be
// done twice. When gRPC fails it, nobody knows whether it was carried out.
func (s *session) change(ctx context.Context, what string, rpc func(context.Context) error) error {
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := s.try(ctx, rpc); err != nil {
		return s.explainChange(ctx, what, err)
	}
	return nil
}

// explainChange is explain for a call that is never repeated.
func (s *session) explainChange(ctx context.Context, what string, err error) error {
	e, said := wire.Error(err)
	switch {
	case said:
		return s.explain(ctx, what, err)
	case status.Code(err) == codes.ResourceExhausted:
		return fmt.Errorf("%s: %w: %v", what, recipes.ErrTooLarge, e) // refused unread
	}
	return fmt.Errorf("%s: %w: %w", what, recipes.ErrUnknownOutcome, s.verdict(ctx, e, said))
}
