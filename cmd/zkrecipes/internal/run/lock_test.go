package run

import (
	"flag"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/grants"
)

// Flags choose each way of the catalog that has a wait queue and a try. An election has no try: the
// verb elect campaigns.
func TestFlagsChooseEachLock(t *testing.T) {
	var chosen []string
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
		if got := v.way().Name; got != name {
			t.Errorf("%q chooses the %s; want the %s", args, got, name)
		}
		chosen = append(chosen, name)
	}
	for _, w := range grants.All() {
		if w.Kind != "" && w.Tries != "" && !slices.Contains(chosen, w.Name) {
			t.Errorf("no flag chooses the %s", w.Name)
		}
	}
}
