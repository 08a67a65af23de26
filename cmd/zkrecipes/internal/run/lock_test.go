package run

import (
	"flag"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Flags choose a lock of each kind of contenders that have a try. An election has no try: the verb
// elect campaigns.
func TestFlagsChooseEachLock(t *testing.T) {
	var kinds []recipes.Kind
	for name, args := range map[string][]string{
		"lock":                      nil,
		"semaphore":                 {"-n=1"},
		"slots":                     {"-n=2"},
		"shared lock for reading":   {"-shared"},
		"shared lock for writing":   {"-exclusive"},
		"priority lock for reading": {"-priority=0", "-shared"},
		"priority lock for writing": {"-priority=0"},
	} {
		var v lockVerb
		f := flag.NewFlagSet("lock", flag.ContinueOnError)
		v.Flags(f)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		w := grants.Named(v.way())
		if w.Name != name {
			t.Errorf("%q chooses the %s; want the %s", args, w.Name, name)
		}
		kinds = append(kinds, w.Kind)
	}
	for _, w := range grants.All() {
		if w.Kind != "" && w.Tries != "" && !slices.Contains(kinds, w.Kind) {
			t.Errorf("no flag chooses a %s, as of the %s", w.Kind, w.Name)
		}
	}
}
