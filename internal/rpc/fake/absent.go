package fake

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// absent is the answer for recipes that this world does not have: they are
// tested over the wire by recipestest, on ZooKeeper.
func absent(recipe string) error {
	return fmt.Errorf("%w: the fake world has no %s", recipes.ErrInvalid, recipe)
}

func (s *Session) Group(string, recipes.GroupConfig) (recipes.Group, error) {
	return nil, absent("group")
}

func (s *Session) Barrier(string) (recipes.Barrier, error) {
	return nil, absent("barrier")
}

func (s *Session) DoubleBarrier(string, recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	return nil, absent("double-barrier")
}

func (s *Session) Names(string) (recipes.Names, error) {
	return nil, absent("names")
}

func (s *Session) Configuration(string) (recipes.Configuration, error) {
	return nil, absent("configuration")
}

func (s *Session) Counter(string, recipes.CounterConfig) (recipes.Counter, error) {
	return nil, absent("counter")
}

func (s *Session) Latch(string, recipes.LatchConfig) (recipes.Latch, error) {
	return nil, absent("latch")
}
