package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// otherKinds are the kinds of locks that PATH can be, and the flags that say so.
var otherKinds = []struct {
	kind    recipes.Kind
	is, use string
}{
	{recipes.KindSharedLock, "a shared lock", "-exclusive or -shared"},
	{recipes.KindSemaphore, "a semaphore", "-n with the number of permits"},
	{recipes.KindPriorityLock, "a priority lock", "-priority"},
	{recipes.KindLock, "a plain lock", "none of -n, -shared, -exclusive and -priority"},
}

// kind is what PATH is to this contender.
func (v *lockVerb) kind() recipes.Kind {
	switch {
	case v.priority.given:
		return recipes.KindPriorityLock
	case v.permits > 1:
		return recipes.KindSemaphore
	case v.sharing():
		return recipes.KindSharedLock
	}
	return recipes.KindLock
}

// disagree reports that PATH is something else to others than it is to this
// contender. What they hold and what it would hold do not exclude each other.
//
// After a grant it is as good as a lock: this contender's znode is there, so of two
// who come at the same time the later one sees the other.
func (v *lockVerb) disagree(ctx context.Context, s recipes.Session) error {
	if v.dialect.other() {
		return nil // such a line shares its path with nothing: the recipes see to it
	}
	lines, err := s.Contenders(ctx, v.path)
	if err != nil {
		return err
	}
	lines.Contenders = slices.DeleteFunc(lines.Contenders, func(c recipes.Contender) bool { return dialect(c.Dialect).other() })
	for _, other := range otherKinds {
		if n := len(lines.Of(other.kind)); n > 0 && other.kind != v.kind() {
			use := other.use
			if other.kind == recipes.KindSemaphore && lines.Permits > 1 {
				use = fmt.Sprintf("-n %d", lines.Permits)
			}
			if other.kind == recipes.KindSemaphore && v.kind() == recipes.KindLock {
				use += ", as -n 1 is a plain lock"
			}
			return exitError{exitOwn, fmt.Errorf("%s is already used as %s by %d other contender(s); this lock would not exclude them: give %s, or another PATH; zkrecipes contenders %s shows them",
				v.path, other.is, n, use, v.path)}
		}
	}
	return nil
}
