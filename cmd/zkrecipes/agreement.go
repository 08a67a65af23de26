package main

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// disagree reports that PATH is something else to others than it is to this
// contender. What they hold and what it would hold do not exclude each other.
//
// After a grant it is as good as a lock: the own znode is there, so of two who
// come at the same time the later one sees the other.
func (v *lockVerb) disagree(ctx context.Context, s recipes.Session) error {
	sharing, permits, priority := v.sharing(), v.permits > 1, v.priority.given
	for _, other := range []struct {
		mine    bool
		is, use string
		look    func(context.Context, recipes.Session, string) ([]standing, error)
	}{
		{sharing, "a shared lock", "-exclusive or -shared", sharedLine},
		{permits, "a semaphore", "-n", permitsLine},
		{priority, "a priority lock", "-priority", priorityLine},
		{!sharing && !permits && !priority, "a plain lock", "none of -n, -shared, -exclusive and -priority", lockLine},
	} {
		if other.mine {
			continue
		}
		line, err := other.look(ctx, s, v.path)
		if err != nil {
			return err
		}
		if len(line) > 0 {
			return exitError{exitOwn, fmt.Errorf("%s is %s to others (%d), whom this would not exclude: give %s, or another PATH; zkrecipes contenders %s shows them",
				v.path, other.is, len(line), other.use, v.path)}
		}
	}
	return nil
}

func permitsLine(ctx context.Context, s recipes.Session, path string) ([]standing, error) {
	line, _, err := semaphoreLine(ctx, s, path)
	return line, err
}
