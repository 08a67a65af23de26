package data

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var configGet = verb.Verb{
	Name: "config get", Usage: "[flags] PATH [KEY]", New: verb.New[configGetVerb],
	Synopsis: "Show the value of a key, or all keys",
	Help: `Writes the value of KEY in the configuration at PATH to stdout, byte for byte.
Without KEY it lists all keys that were set.

    zkrecipes config get /app db/host
    zkrecipes config get -format=json /app

A terminal gets control characters as escapes.

KEY is a path below PATH, such as db/host; "" is PATH itself. The parent of a key, such
as db, also exists, but is listed only if it was set itself. The revision of a value
grows with each change. To replace a value only if it is still the one that you have
read, read its revision first:

    revision=$(zkrecipes config get -revision /app db/host)
    value=$(zkrecipes config get /app db/host)
    zkrecipes config set -if-revision $revision /app db/host "$value,db2"

` + verb.OnceCodes,
}

type configGetVerb struct {
	keyOrAll
	revision bool
}

func (v *configGetVerb) Flags(f *flag.FlagSet) {
	f.BoolVar(&v.revision, "revision", false, helptext.Common("show the revision of KEY instead of its value"))
}

func (v *configGetVerb) Arguments(args []string) error {
	if v.revision && len(args) == 1 {
		return errors.New("-revision needs KEY")
	}
	return v.keyOrAll.Arguments(args)
}

func (v *configGetVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Once(ctx, t, v.open, func(ctx context.Context, c recipes.Configuration) error {
		if v.all {
			return v.list(ctx, c, t)
		}
		e, err := c.Get(ctx, v.key)
		if err != nil {
			return err
		}
		switch {
		case v.revision:
			return t.Stored(inEntryJSON(e), fmt.Appendln(nil, e.Revision))
		case e.Unset:
			t.None("key %s of configuration %s was not set: it is the parent of other keys", shownKey(v.key), v.Path)
		case len(e.Value) == 0:
			t.None("the value of key %s of configuration %s is empty", shownKey(v.key), v.Path)
		}
		return t.Stored(inEntryJSON(e), e.Value)
	})
}

func (v *configGetVerb) list(ctx context.Context, c recipes.Configuration, t *verb.Tool) error {
	entries, err := c.Snapshot(ctx)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e recipes.Entry) bool { return e.Unset })
	if len(entries) == 0 {
		t.None("no key is set in the configuration %s", v.Path)
	}
	return t.Result(verb.Object{"path", v.Path, "keys", verb.List(entries, inEntryJSON)}, verb.Table("KEY\tREVISION\tMODIFIED\tVALUE", entries, func(e recipes.Entry) []string {
		return []string{shownKey(e.Key), fmt.Sprint(e.Revision), e.Modified.UTC().Format(time.RFC3339), verb.Printable(e.Value)}
	}))
}

type keyOrAll struct {
	configKey
	all bool
}

func (k *keyOrAll) Arguments(args []string) error {
	switch len(args) {
	case 1:
		k.all = true
		return k.OnePath.Arguments(args)
	case 2:
		return k.take(args[0], args[1])
	}
	return errors.New("give PATH, or PATH and KEY, after the flags")
}

// shownKey returns a key as a user would type it.
func shownKey(key string) string {
	if key == "" {
		return `""`
	}
	return key
}

// entryJSON is a key in JSON. A key that does not exist has revision 0. Only a watch sets
// Deleted: the key existed before.
type entryJSON struct {
	Key         string     `json:"key"`
	Revision    int64      `json:"revision"`
	Modified    *time.Time `json:"modified,omitempty"`
	Unset       bool       `json:"unset,omitempty"` // only the parent of other keys
	Deleted     bool       `json:"deleted,omitempty"`
	Value       string     `json:"value"`
	ValueBase64 []byte     `json:"value_base64,omitempty"` // only for a value that is not UTF-8
}

func inEntryJSON(e recipes.Entry) entryJSON {
	value := verb.InJSON(e.Value)
	j := entryJSON{Key: e.Key, Revision: int64(e.Revision), Unset: e.Unset, Value: value.Data, ValueBase64: value.DataBase64}
	if !e.None() {
		j.Modified = new(e.Modified.UTC())
	}
	return j
}

var configSet = verb.Verb{
	Name: "config set", Usage: "[flags] PATH KEY VALUE|-", New: verb.New[configSetVerb], ExitCodeOnly: true,
	Synopsis: "Set the value of a key",
	Help: `Sets the value of KEY in the configuration at PATH, and shows the new revision. "-"
reads the value from stdin, to the last byte.

    zkrecipes config set /app db/host db1
    zkrecipes config set -if-revision 0 /app db/password -

Missing keys and parents are created. With -if-revision the value changes only if it
still has that revision; otherwise the exit code is 4. zkrecipes config get -revision
shows the revision.

` + verb.OnceCodes,
}

type configSetVerb struct {
	configChange
	value string
}

func (v *configSetVerb) Flags(f *flag.FlagSet) {
	f.Int64Var(&v.revision, "if-revision", int64(recipes.AnyRevision), helptext.Common("only if the key has this `revision`; 0: only if the key does not exist; -1: always"))
}

func (v *configSetVerb) Arguments(args []string) error {
	if len(args) != 3 {
		return errors.New(`give PATH, KEY and a value, or "-" for stdin, after the flags`)
	}
	v.value = args[2]
	return v.take(args[0], args[1])
}

func (v *configSetVerb) Run(ctx context.Context, t *verb.Tool) error {
	value, err := verb.Payload(v.value) // before a session is open
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
	Help: `Removes KEY from the configuration at PATH. With -if-revision it does so only if the
value still has that revision.

    zkrecipes config delete /app db/host
    zkrecipes config delete -if-revision 4294967301 /app db/host

A key that has keys below it is not removed: the exit code is 4.

` + verb.OnceCodes,
}

type configDeleteVerb struct{ configChange }

func (v *configDeleteVerb) Flags(f *flag.FlagSet) {
	f.Int64Var(&v.revision, "if-revision", int64(recipes.AnyRevision), helptext.Common("only if the key has this `revision`; -1: always"))
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

type configKey struct {
	verb.OnePath
	key string
}

func (k *configKey) take(path, key string) error {
	k.Path, k.key = path, key
	return cmp.Or(recipes.ValidatePath(path), recipes.ValidateKey(key))
}

func (k *configKey) open(s recipes.Client) (recipes.Configuration, error) {
	return s.Configuration(k.Path)
}

type configChange struct {
	configKey
	revision int64
}

func (c *configChange) take(path, key string) error {
	if err := recipes.Revision(c.revision).Validate(); err != nil {
		return fmt.Errorf("-if-revision: %w", err)
	}
	return c.configKey.take(path, key)
}

var configWatch = verb.Verb{
	Name: "config watch", Usage: "[flags] PATH [KEY]", New: verb.New[configWatchVerb],
	Synopsis: "Show each change of a key, or of all keys",
	Help: `Shows the value of KEY in the configuration at PATH, and then a line for each change.
Without KEY it shows all keys that were set.

    zkrecipes config watch /app db/host
    zkrecipes config watch -format=json /app

A line is the revision, the key and the value. A value that does not fit on one line is
quoted. For a key that was deleted, the line is "deleted" and the key. Changes in quick
succession may be shown as one: the last line is always the current value. In a shell:

    zkrecipes config watch /app db/host | while read -r revision key value; do
        test "$revision" = deleted || echo "$key is now $value"
    done

` + verb.FollowHelp,
}

type configWatchVerb struct {
	keyOrAll
	known []recipes.Entry
}

func (v *configWatchVerb) Run(ctx context.Context, t *verb.Tool) error {
	if v.all {
		return verb.Follow(ctx, t, v.open, recipes.Configuration.WatchTree, func(now []recipes.Entry) error { return v.show(t, now) })
	}
	missing := false // the missing key was reported
	return verb.Follow(ctx, t, v.open, func(c recipes.Configuration, ctx context.Context) (<-chan recipes.Entry, error) {
		return c.Watch(ctx, v.key)
	}, func(e recipes.Entry) error {
		if len(v.known) == 0 && (e.None() || e.Unset) && !missing {
			missing = true
			t.None("key %s of configuration %s is not set yet", shownKey(v.key), v.Path)
		}
		if e.None() {
			return v.show(t, nil)
		}
		return v.show(t, []recipes.Entry{e})
	})
}

// show writes the changes since the last call. A watch in a new session begins with all
// entries again.
func (v *configWatchVerb) show(t *verb.Tool, now []recipes.Entry) error {
	for _, e := range v.changed(now) {
		shown, text := inEntryJSON(e), fmt.Sprintf("%d %s %s", e.Revision, shownKey(e.Key), verb.OnOneLine(e.Value))
		if shown.Deleted = e.None(); shown.Deleted {
			text = "deleted " + shownKey(e.Key)
		}
		if err := t.Line(shown, text); err != nil {
			return err
		}
	}
	return nil
}

// changed returns the keys that were deleted since the last call, and then those that were
// set.
func (v *configWatchVerb) changed(now []recipes.Entry) (changed []recipes.Entry) {
	now = slices.DeleteFunc(slices.Clone(now), func(e recipes.Entry) bool { return e.Unset })
	gone, present := verb.Compare(v.known, now, func(e recipes.Entry) string { return e.Key })
	for _, e := range gone {
		changed = append(changed, recipes.Entry{Key: e.Key})
	}
	for _, e := range present {
		if e.Was == nil || e.Was.Revision != e.Is.Revision {
			changed = append(changed, e.Is)
		}
	}
	v.known = now
	return changed
}
