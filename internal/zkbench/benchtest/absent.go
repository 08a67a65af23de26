package benchtest

import "github.com/zkrecipes/zkrecipes/recipes"

// Recipes that no benchmark uses.

func (s *session) Group(string, recipes.GroupConfig) (recipes.Group, error) {
	return nil, errNotHere("group")
}

func (s *session) Barrier(string) (recipes.Barrier, error) {
	return nil, errNotHere("barrier")
}

func (s *session) DoubleBarrier(string, recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	return nil, errNotHere("double-barrier")
}

func (s *session) Names(string) (recipes.Names, error) {
	return nil, errNotHere("names")
}

func (s *session) Configuration(string) (recipes.Configuration, error) {
	return nil, errNotHere("configuration")
}

func (s *session) Counter(string, recipes.CounterConfig) (recipes.Counter, error) {
	return nil, errNotHere("counter")
}

func (s *session) Latch(string, recipes.LatchConfig) (recipes.Latch, error) {
	return nil, errNotHere("latch")
}
