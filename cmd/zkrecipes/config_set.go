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
	exitCodeOnly
	revision         int64
	path, key, value string
}

func (v *configSetVerb) describe() doc {
	return doc{
		usage:    "config set [flags] PATH KEY VALUE|-",
		synopsis: "Give a key a value",
		about: `
Gives KEY in the configuration at PATH a value, and shows the new revision. "-" takes
the value from stdin, to the last byte.
`,
		examples: [2]string{
			"zkrecipes config set /app db/host db1",
			"zkrecipes config set -if-revision 0 /app db/password -",
		},
		rules: `
Missing keys and parents are created. With -if-revision the value is changed only if
it still has that revision; otherwise the exit code is 4. zkrecipes config get -revision
shows the revision.

` + onceCodes,
	}
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
