package data

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var configGet = verb.Verb{
	Name: "config get", Usage: "[flags] PATH [KEY]", New: verb.New[configGetVerb],
	Synopsis: "Show the value of a key, or all keys",
	Help: `Writes the value of KEY in the configuration at PATH to stdout, as it is stored.
Without KEY it lists all keys that were set.

    zkrecipes config get /app db/host
    zkrecipes config get -format=json /app

KEY is a path below PATH, such as db/host; "" is PATH itself. The parent of a key, such
as db, exists too; it is listed if it was set itself. A value's revision grows
with every change. To replace only the value that you have read, read its revision
first:

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
	f.BoolVar(&v.revision, "revision", false, "show the revision of KEY and not its value")
}

func (v *configGetVerb) Arguments(args []string) error {
	if v.revision && len(args) == 1 {
		return errors.New("-revision is that of one KEY")
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
			t.None("key %s of configuration %s was not set: it is the parent of other keys", shownKey(v.key), v.path)
		case len(e.Value) == 0:
			t.None("the value of key %s of configuration %s is empty", shownKey(v.key), v.path)
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
		t.None("no key is set in the configuration %s", v.path)
	}
	return t.Result(verb.Object{"path", v.path, "keys", verb.List(entries, inEntryJSON)}, verb.Table("KEY\tREVISION\tMODIFIED\tVALUE", entries, func(e recipes.Entry) string {
		return fmt.Sprintf("%s\t%d\t%s\t%s", shownKey(e.Key), e.Revision, e.Modified.UTC().Format(time.RFC3339), verb.Printable(e.Value))
	}))
}

// keyOrAll is a key of a configuration, or all keys.
type keyOrAll struct {
	configKey
	all bool
}

func (k *keyOrAll) Flags(*flag.FlagSet) {}

func (k *keyOrAll) Arguments(args []string) error {
	switch len(args) {
	case 1:
		k.path, k.all = args[0], true
		return recipes.ValidatePath(k.path)
	case 2:
		return k.take(args[0], args[1])
	}
	return errors.New("give PATH, or PATH and KEY, after the flags")
}

// shownKey shows the configuration's own key as it would be typed.
func shownKey(key string) string {
	if key == "" {
		return `""`
	}
	return key
}

// entryJSON is a key in JSON. One that does not exist has revision 0. In a watch deleted
// says that it existed before.
type entryJSON struct {
	Key         string     `json:"key"`
	Revision    int64      `json:"revision"`
	Modified    *time.Time `json:"modified,omitempty"`
	Unset       bool       `json:"unset,omitempty"` // it is only the parent of other keys
	Deleted     bool       `json:"deleted,omitempty"`
	Value       string     `json:"value"`
	ValueBase64 []byte     `json:"value_base64,omitempty"` // of a value that is no text
}

func inEntryJSON(e recipes.Entry) entryJSON {
	value := verb.InJSON(e.Value)
	j := entryJSON{Key: e.Key, Revision: int64(e.Revision), Unset: e.Unset, Value: value.Data, ValueBase64: value.DataBase64}
	if !e.None() {
		at := e.Modified.UTC()
		j.Modified = &at
	}
	return j
}
