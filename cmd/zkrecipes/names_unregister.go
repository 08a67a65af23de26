package main

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// namesUnregisterVerb gives back a name that was taken for good.
type namesUnregisterVerb struct {
	pathAndName
	token int64
}

func (v *namesUnregisterVerb) describe() (arguments, synopsis, help string) {
	return "names unregister [flags] PATH NAME", "Give back a name that was taken for good", `
Gives back NAME in the directory at PATH, which was taken with -persistent, by
whomever; with -token only if it is that registration, and not a later one. A name
that a session has is given back by that.

` + onceCodes
}

func (v *namesUnregisterVerb) flags(f *flag.FlagSet) {
	f.Int64Var(&v.token, "token", 0, "only the registration with this `token`, which register and list show")
}

func (v *namesUnregisterVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		n, err := s.Names(v.path)
		if err != nil {
			return err
		}
		if err := n.Unregister(ctx, v.name, recipes.Token(v.token)); err != nil {
			return err
		}
		return out.done(struct {
			Name         string `json:"name"`
			Unregistered bool   `json:"unregistered"`
		}{v.name, true})
	})
}
