package fake

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// SharedLock is not in the fake: it goes over the wire as Lock does, and the
// contract tests cover it.
func (s *Session) SharedLock(string, recipes.SharedLockConfig) (recipes.SharedLock, error) {
	return nil, fmt.Errorf("%w: no shared lock in the fake", recipes.ErrInvalid)
}

// Semaphore is not in the fake either.
func (s *Session) Semaphore(string, recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	return nil, fmt.Errorf("%w: no semaphore in the fake", recipes.ErrInvalid)
}

// PriorityLock is not in the fake either.
func (s *Session) PriorityLock(string, recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	return nil, fmt.Errorf("%w: no priority lock in the fake", recipes.ErrInvalid)
}
