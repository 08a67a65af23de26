package main

import "github.com/zkrecipes/zkrecipes/recipes"

// kindOf is what contenders and revoke call a contender: its recipe, or what it does
// with a shared lock or priority lock.
func kindOf(c recipes.Contender) string {
	switch c.Kind {
	case recipes.KindSharedLock:
		return string(c.Mode)
	case recipes.KindPriorityLock:
		return "priority-" + string(c.Mode)
	}
	return string(c.Kind)
}
