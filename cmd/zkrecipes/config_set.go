package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// configSetVerb gives a key of a configuration a value.
type configSetVerb struct {
	revision         int64
	path, key, value string
}

func (v *configSetVerb) describe() (arguments, synopsis, help string) {
	return "config set [flags] PATH KEY VALUE|-", "Give a key a value", `
Gives KEY in the configuration at PATH a value, and shows its new revision. "-"
takes the value from stdin, to the last byte. Keys and parents that are missing
are made.

With -if-revision nothing is done, and the exit code is 4, if somebody has changed
the value meanwhile; config get -revision shows the revision.

` + onceCodes
}

func (v *configSetVerb) flags(f *flag.FlagSet) {
	f.Int64Var(&v.revision, "if-revision", int64(recipes.AnyRevision), "only if this is the present `revision`; 0: only if there is no such key;\n-1: whatever there is")
}

func (v *configSetVerb) arguments(args []string) error {
	if len(args) != 3 {
		return errors.New(`give PATH, KEY and a value, or "-" for stdin, after the flags`)
	}
	v.path, v.key, v.value = args[0], args[1], args[2]
	if err := recipes.ValidateRevision(recipes.Revision(v.revision)); err != nil {
		return fmt.Errorf("-if-revision: %w", err)
	}
	return cmp.Or(recipes.ValidatePath(v.path), recipes.ValidateKey(v.key))
}

func (v *configSetVerb) otherwise() int { return exitFailed }

func (v *configSetVerb) run(ctx context.Context, t *tool, out *output) error {
	value := []byte(v.value)
	if v.value == "-" {
		var err error
		if value, err = readAll(os.Stdin); err != nil { // before a session waits for it
			return err
		}
	}
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		c, err := s.Configuration(v.path)
		if err != nil {
			return err
		}
		revision, err := c.Set(ctx, v.key, value, recipes.Revision(v.revision))
		if err != nil {
			return err
		}
		return out.result(struct {
			Key      string `json:"key"`
			Revision int64  `json:"revision"`
		}{v.key, int64(revision)}, func(w io.Writer) { fmt.Fprintln(w, revision) })
	})
}
