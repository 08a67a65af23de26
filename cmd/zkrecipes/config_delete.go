package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// configDeleteVerb removes a key of a configuration.
type configDeleteVerb struct {
	exitCodeOnly
	revision  int64
	path, key string
}

func (v *configDeleteVerb) describe() doc {
	return doc{
		usage:    "config delete [flags] PATH KEY",
		synopsis: "Remove a key",
		about: `
Removes KEY from the configuration at PATH. With -if-revision it does so only if
nobody has changed the value since then.
`,
		examples: [2]string{
			"zkrecipes config delete /app db/host",
			"zkrecipes config delete -if-revision 4294967301 /app db/host",
		},
		rules: `
A key that has keys below it is not removed: the exit code is 4.

` + onceCodes,
	}
}

func (v *configDeleteVerb) flags(f *flag.FlagSet) {
	f.Int64Var(&v.revision, "if-revision", int64(recipes.AnyRevision), "only if this is the present `revision`; -1: whatever it is")
}

func (v *configDeleteVerb) arguments(args []string) error {
	if len(args) != 2 {
		return errors.New("give PATH and KEY, after the flags")
	}
	v.path, v.key = args[0], args[1]
	if err := recipes.ValidateRevision(recipes.Revision(v.revision)); err != nil {
		return fmt.Errorf("-if-revision: %w", err)
	}
	return cmp.Or(recipes.ValidatePath(v.path), recipes.ValidateKey(v.key))
}

func (v *configDeleteVerb) otherwise() int { return exitFailed }

func (v *configDeleteVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		c, err := s.Configuration(v.path)
		if err != nil {
			return err
		}
		if err := c.Delete(ctx, v.key, recipes.Revision(v.revision)); err != nil {
			return err
		}
		return out.done(struct {
			Key     string `json:"key"`
			Deleted bool   `json:"deleted"`
		}{v.key, true})
	})
}
