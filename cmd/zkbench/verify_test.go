package main

import (
	"context"
	"fmt"
	"os"

	plugins "github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// serveDefective is a plugin with the defect that its argument names.
func serveDefective() {
	plugins.Serve(func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		s, err := zookeeper.Open(ctx, cfg)
		return defective{s, os.Args[1]}, err
	})
}

type defective struct {
	recipes.Client
	defect string
}

func (d defective) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := d.Client.Lock(path, cfg)
	return defectiveLock{l, d, cfg}, err
}

type defectiveLock struct {
	recipes.Lock
	defective
	cfg recipes.LockConfig
}

func (l defectiveLock) Acquire(ctx context.Context) (recipes.Hold, error) {
	if l.defect == "two-holders" {
		other, err := l.Client.Lock(fmt.Sprintf("%s/%x", l.Path(), l.ID()), l.cfg)
		if err != nil {
			return nil, err
		}
		return other.Acquire(ctx)
	}
	h, err := l.Lock.Acquire(ctx)
	return sameToken{h}, err
}

// sameToken is a hold whose token does not grow.
type sameToken struct{ recipes.Hold }

func (sameToken) Token() recipes.Token { return 1 }
