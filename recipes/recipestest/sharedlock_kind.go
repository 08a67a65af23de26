package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// sharedKind is a shared lock of which only writers are taken: it promises what
// a lock does.
func sharedKind(strategy recipes.Strategy) kind {
	return kind{name: "writers", marker: "write-", strategy: strategy,
		take: func(s recipes.Client, path string, o options) (line, error) {
			l, err := s.SharedLock(path, recipes.SharedLockConfig{Strategy: o.strategy, Data: []byte(o.data), Joined: o.joined})
			return sharedLine{l}, err
		}}
}

func sharedKinds() []kind {
	var kinds []kind
	for _, s := range []recipes.Strategy{recipes.Herd, recipes.Predecessor} { // which Handoff is, here
		kinds = append(kinds, sharedKind(s))
	}
	return kinds
}

type sharedLine struct{ recipes.SharedLock }

func (l sharedLine) Enter(ctx context.Context) (grant, error) {
	h, err := l.AcquireWrite(ctx)
	if err != nil {
		return nil, err
	}
	return lockGrant{h}, nil
}
