package fake

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Queue is not in this world.
func (s *Session) Queue(string, recipes.QueueConfig) (recipes.Queue, error) {
	return nil, fmt.Errorf("%w: queues are not in the fake", recipes.ErrInvalid)
}

// PriorityQueue is not in this world.
func (s *Session) PriorityQueue(string, recipes.QueueConfig) (recipes.PriorityQueue, error) {
	return nil, fmt.Errorf("%w: priority queues are not in the fake", recipes.ErrInvalid)
}
