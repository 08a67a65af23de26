package data

import (
	"context"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
	missing := false // and that was reported
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
