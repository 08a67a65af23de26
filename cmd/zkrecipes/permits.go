package main

import (
	"errors"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// permitCount is the number of permits of a semaphore, and 0 if PATH is none. One permit is
// a semaphore too: those of other libraries are no locks. It is a flag.Value.
type permitCount int

func (p *permitCount) String() string { return "" }

func (p *permitCount) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || (recipes.SemaphoreConfig{Permits: n}).Validate() != nil {
		return errors.New("the number of permits is from 1 to 2^31-1")
	}
	*p = permitCount(n)
	return nil
}

func (p permitCount) given() bool { return p > 0 }
