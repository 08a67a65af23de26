package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// configGetVerb shows a key of a configuration, or all.
type configGetVerb struct {
	revision  bool
	path, key string
	all       bool
}

func (v *configGetVerb) describe() doc {
	return doc{
		usage:    "config get [flags] PATH [KEY]",
		synopsis: "Show the value of a key, or all keys",
		about: `
Writes the value of KEY in the configuration at PATH to stdout, as it is stored.
Without KEY it lists all keys that were set.
`,
		examples: [2]string{
			"zkrecipes config get /app db/host",
			"zkrecipes config get -format=json /app",
		},
		rules: `
KEY is a path below PATH, such as db/host; "" is PATH itself. The parent of a key, such
as db, exists too; it is listed if it was set itself. A value's revision grows
with every change. To replace only the value that you have read, read its revision
first:

    revision=$(zkrecipes config get -revision /app db/host)
    value=$(zkrecipes config get /app db/host)
    zkrecipes config set -if-revision $revision /app db/host "$value,db2"

` + onceCodes,
	}
}

func (v *configGetVerb) flags(f *flag.FlagSet) {
	f.BoolVar(&v.revision, "revision", false, "show the revision of KEY and not its value")
}

func (v *configGetVerb) arguments(args []string) error {
	if len(args) != 1 && len(args) != 2 {
		return errors.New("give PATH, or PATH and KEY, after the flags")
	}
	v.path, v.all = args[0], len(args) == 1
	if v.all {
		if v.revision {
			return errors.New("-revision is that of one KEY")
		}
		return recipes.ValidatePath(v.path)
	}
	v.key = args[1]
	return cmp.Or(recipes.ValidatePath(v.path), recipes.ValidateKey(v.key))
}

func (v *configGetVerb) otherwise() int { return exitFailed }

func (v *configGetVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		c, err := s.Configuration(v.path)
		if err != nil {
			return err
		}
		if v.all {
			return v.list(ctx, c, out)
		}
		e, err := c.Get(ctx, v.key)
		if err != nil {
			return err
		}
		switch {
		case v.revision:
			return out.stored(inEntryJSON(e), fmt.Appendln(nil, e.Revision))
		case e.Unset:
			out.none("key %s of configuration %s was not set: it is the parent of other keys", shownKey(v.key), v.path)
		case len(e.Value) == 0:
			out.none("the value of key %s of configuration %s is empty", shownKey(v.key), v.path)
		}
		return out.stored(inEntryJSON(e), e.Value)
	})
}

func (v *configGetVerb) list(ctx context.Context, c recipes.Configuration, out *output) error {
	entries, err := c.Snapshot(ctx)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e recipes.Entry) bool { return e.Unset })
	keys := []entryJSON{}
	for _, e := range entries {
		keys = append(keys, inEntryJSON(e))
	}
	if len(entries) == 0 {
		out.none("no key is set in the configuration %s", v.path)
	}
	return out.result(struct {
		Path string      `json:"path"`
		Keys []entryJSON `json:"keys"`
	}{v.path, keys}, func(out io.Writer) {
		if len(entries) == 0 {
			return
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "KEY\tREVISION\tMODIFIED\tVALUE")
		for _, e := range entries {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", shownKey(e.Key), e.Revision, e.Modified.UTC().Format(time.RFC3339), printable(e.Value))
		}
		_ = w.Flush()
	})
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
	j := entryJSON{Key: e.Key, Revision: int64(e.Revision), Unset: e.Unset}
	if !e.None() {
		at := e.Modified.UTC()
		j.Modified = &at
	}
	j.Value, j.ValueBase64 = inJSON(e.Value)
	return j
}
