package benchtest

import "github.com/zkrecipes/zkrecipes/recipes"

func (s *session) Queue(string, recipes.QueueConfig) (recipes.Queue, error) {
	return nil, errNotHere("queue")
}

func (s *session) PriorityQueue(string, recipes.QueueConfig) (recipes.PriorityQueue, error) {
	return nil, errNotHere("priority queue")
}
