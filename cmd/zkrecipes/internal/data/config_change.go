package data

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var configSet = verb.Verb{
	Name: "config set", Usage: "[flags] PATH KEY VALUE|-", New: verb.New[configSetVerb], ExitCodeOnly: true,
	Synopsis: "Give a key a value",
	Help: `Gives KEY in the configuration at PATH a value, and shows the new revision. "-" takes
the value from stdin, to the last byte.

    zkrecipes config set /app db/host db1
    zkrecipes config set -if-revision 0 /app db/password -

Missing keys and parents are created. With -if-revision the value is changed only if
it still has that revision; otherwise the exit code is 4. zkrecipes config get -revision
shows the revision.

` + verb.OnceCodes,
}

type configSetVerb struct {
	configChange
	value string
}

func (v *configSetVerb) Flags(f *flag.FlagSet) {
	v.flag(f, "only if this is the present `revision`; 0: only if there is no such key;\n-1: whatever there is")
}

func (v *configSetVerb) Arguments(args []string) error {
	if len(args) != 3 {
		return errors.New(`give PATH, KEY and a value, or "-" for stdin, after the flags`)
	}
	v.value = args[2]
	return v.take(args[0], args[1])
}

func (v *configSetVerb) Run(ctx context.Context, t *verb.Tool) error {
	value, err := verb.Payload(v.value) // before a session waits for it
	if err != nil {
		return err
	}
	return verb.Once(ctx, t, v.open, func(ctx context.Context, c recipes.Configuration) error {
		revision, err := c.Set(ctx, v.key, value, recipes.Revision(v.revision))
		if err != nil {
			return err
		}
		return t.Say(verb.Object{"key", v.key, "revision", int64(revision)}, revision)
	})
}

var configDelete = verb.Verb{
	Name: "config delete", Usage: "[flags] PATH KEY", New: verb.New[configDeleteVerb], ExitCodeOnly: true,
	Synopsis: "Remove a key",
	Help: `Removes KEY from the configuration at PATH. With -if-revision it does so only if
nobody has changed the value since then.

    zkrecipes config delete /app db/host
    zkrecipes config delete -if-revision 4294967301 /app db/host

A key that has keys below it is not removed: the exit code is 4.

` + verb.OnceCodes,
}

type configDeleteVerb struct{ configChange }

func (v *configDeleteVerb) Flags(f *flag.FlagSet) {
	v.flag(f, "only if this is the present `revision`; -1: whatever it is")
}

func (v *configDeleteVerb) Arguments(args []string) error {
	if len(args) != 2 {
		return errors.New("give PATH and KEY, after the flags")
	}
	return v.take(args[0], args[1])
}

func (v *configDeleteVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Once(ctx, t, v.open, func(ctx context.Context, c recipes.Configuration) error {
		if err := c.Delete(ctx, v.key, recipes.Revision(v.revision)); err != nil {
			return err
		}
		return t.Done(verb.Object{"key", v.key, "deleted", true})
	})
}

// configKey is a key of a configuration.
type configKey struct{ path, key string }

func (k *configKey) take(path, key string) error {
	k.path, k.key = path, key
	return cmp.Or(recipes.ValidatePath(path), recipes.ValidateKey(key))
}

func (k *configKey) open(s recipes.Session) (recipes.Configuration, error) {
	return s.Configuration(k.path)
}

// configChange is what the verbs that change a key have in common.
type configChange struct {
	configKey
	revision int64
}

func (c *configChange) flag(f *flag.FlagSet, usage string) {
	f.Int64Var(&c.revision, "if-revision", int64(recipes.AnyRevision), usage)
}

func (c *configChange) take(path, key string) error {
	if err := recipes.ValidateRevision(recipes.Revision(c.revision)); err != nil {
		return fmt.Errorf("-if-revision: %w", err)
	}
	return c.configKey.take(path, key)
}
