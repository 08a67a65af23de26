package main

import (
	"cmp"
	"errors"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// onePath is what most verbs that ask have in common: they take a PATH, and no
// flags of their own unless they say so.
type onePath struct{ path string }

func (p *onePath) flags(*flag.FlagSet) {}

func (p *onePath) arguments(args []string) error {
	if len(args) != 1 {
		return errors.New("give one PATH, after the flags")
	}
	p.path = args[0]
	return recipes.ValidatePath(p.path)
}

func (p *onePath) otherwise() int { return exitFailed }

// pathAndName is onePath for verbs that take a NAME too.
type pathAndName struct {
	onePath
	name string
}

func (p *pathAndName) arguments(args []string) error {
	if len(args) != 2 {
		return errors.New("give PATH and NAME, after the flags")
	}
	p.path, p.name = args[0], args[1]
	return cmp.Or(recipes.ValidatePath(p.path), recipes.ValidateName(p.name))
}
