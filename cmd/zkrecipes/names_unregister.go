package main

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// namesUnregisterVerb gives back a name that was taken for good.
type namesUnregisterVerb struct {
	exitCodeOnly
	pathAndName
	token int64
}

func (v *namesUnregisterVerb) describe() doc {
	return doc{
		usage:    "names unregister [flags] PATH NAME",
		synopsis: "Give back a name that was taken for good",
		about: `
Removes the persistent registration of NAME in the directory at PATH, whoever made it.
With -token it removes only that registration, and not a later one.
`,
		examples: [2]string{
			"zkrecipes names unregister /services db",
			"zkrecipes names unregister -token 4294967301 /services db",
		},
		rules: `
A name that belongs to a session is not removed: it ends with that session.

` + onceCodes,
	}
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
