package server

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A lockOfModes is a shared lock or a priority lock.
type lockOfModes[H recipes.Hold] interface {
	AcquireRead(context.Context) (H, error)
	AcquireWrite(context.Context) (H, error)
	TryRead(context.Context) (H, error)
	TryWrite(context.Context) (H, error)
	Revoke(ctx context.Context, znode string) error
	RevokeForced(ctx context.Context, znode string) error
}

// acquireMode acquires in the way that a request asks for.
func acquireMode[H recipes.Hold](ctx context.Context, lock lockOfModes[H], mode pb.Mode, try bool) (*held, error) {
	acquire := lock.AcquireRead
	switch mode := wire.Mode(mode); {
	case mode == recipes.Reading && try:
		acquire = lock.TryRead
	case mode == recipes.Reading:
	case mode == recipes.Writing && try:
		acquire = lock.TryWrite
	case mode == recipes.Writing:
		acquire = lock.AcquireWrite
	default:
		return nil, fmt.Errorf("%w: the mode is not known", recipes.ErrInvalid)
	}
	h, err := acquire(ctx)
	return holding(h, err)
}

// revoke asks for a hold, or takes it.
func revoke[H recipes.Hold](ctx context.Context, lock lockOfModes[H], znode string, force bool) error {
	if force {
		return lock.RevokeForced(ctx, znode)
	}
	return lock.Revoke(ctx, znode)
}
