package benchtest

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func (s *session) SharedLock(string, recipes.SharedLockConfig) (recipes.SharedLock, error) {
	return nil, fmt.Errorf("%w: benchtest has no shared lock", recipes.ErrInvalid)
}

func (s *session) Semaphore(string, recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	return nil, fmt.Errorf("%w: benchtest has no semaphore", recipes.ErrInvalid)
}

func (s *session) PriorityLock(string, recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	return nil, fmt.Errorf("%w: benchtest has no priority lock", recipes.ErrInvalid)
}
