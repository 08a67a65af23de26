package main

import (
	"fmt"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// priority is that of an element of a queue, or of a contender for a lock, which
// may have none. It is a flag.Value.
type priority struct {
	given  bool
	number int
}

func (p *priority) String() string { return "" }

func (p *priority) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > recipes.MaxPriority {
		return fmt.Errorf("a priority is a number from 0 to %d", recipes.MaxPriority)
	}
	p.given, p.number = true, n
	return nil
}
