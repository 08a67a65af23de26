package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// configWatchVerb shows each change of a key, or of all.
type configWatchVerb struct {
	path, key string
	all       bool
	known     map[string]recipes.Entry
}

func (v *configWatchVerb) describe() doc {
	return doc{
		usage:    "config watch [flags] PATH [KEY]",
		synopsis: "Show each change of a key, or of all keys",
		about: `
Shows the value of KEY in the configuration at PATH, and then a line for each change.
Without KEY it shows all keys.
`,
		examples: [2]string{
			"zkrecipes config watch /app db/host",
			"zkrecipes config watch -format=json /app",
		},
		rules: `
A line is the revision, the key and the value. A value that would not fit a line is
quoted. Revision 0 says that the key does not exist. Changes that follow each other
fast may be shown as one: the last line is always the present value. A shell reads
them so:

    zkrecipes config watch /app db/host | while read -r revision key value; do
        ...
    done

` + followHelp,
	}
}

func (v *configWatchVerb) flags(*flag.FlagSet) {}

func (v *configWatchVerb) arguments(args []string) error {
	if len(args) != 1 && len(args) != 2 {
		return errors.New("give PATH, or PATH and KEY, after the flags")
	}
	v.path, v.all = args[0], len(args) == 1
	if v.all {
		return recipes.ValidatePath(v.path)
	}
	v.key = args[1]
	return cmp.Or(recipes.ValidatePath(v.path), recipes.ValidateKey(v.key))
}

func (v *configWatchVerb) otherwise() int { return exitFailed }

func (v *configWatchVerb) run(ctx context.Context, t *tool, out *output) error {
	show := func(e recipes.Entry) error {
		return out.line(inEntryJSON(e), fmt.Sprintf("%d %s %s", e.Revision, shownKey(e.Key), onOneLine(e.Value)))
	}
	if !v.all {
		var shown *recipes.Entry // another session's watch begins with what is there, again
		return follow(ctx, t, out, func(ctx context.Context, s recipes.Session) (<-chan recipes.Entry, error) {
			c, err := s.Configuration(v.path)
			if err != nil {
				return nil, err
			}
			return c.Watch(ctx, v.key)
		}, func(e recipes.Entry) error {
			if shown != nil && shown.Revision == e.Revision {
				return nil
			}
			shown = &e
			return show(e)
		})
	}
	v.known = map[string]recipes.Entry{}
	return follow(ctx, t, out, func(ctx context.Context, s recipes.Session) (<-chan []recipes.Entry, error) {
		c, err := s.Configuration(v.path)
		if err != nil {
			return nil, err
		}
		return c.WatchTree(ctx)
	}, func(now []recipes.Entry) error {
		for _, e := range v.changed(now) {
			if err := show(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// changed returns what differs from what was known, the keys that have gone
// first, and knows it.
func (v *configWatchVerb) changed(now []recipes.Entry) (changed []recipes.Entry) {
	present := make(map[string]recipes.Entry, len(now))
	for _, e := range now {
		present[e.Key] = e
	}
	for key := range v.known {
		if _, there := present[key]; !there {
			changed = append(changed, recipes.Entry{Key: key})
		}
	}
	slices.SortFunc(changed, func(a, b recipes.Entry) int { return cmp.Compare(a.Key, b.Key) })
	for _, e := range now {
		if v.known[e.Key].Revision != e.Revision {
			changed = append(changed, e)
		}
	}
	v.known = present
	return changed
}
