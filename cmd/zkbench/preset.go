package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// presets are flags that belong together, by name.
var presets = map[string]map[string]string{
	// Hunt, Konar, Junqueira, Reed: "ZooKeeper: Wait-free coordination for
	// Internet-scale systems" (2010), table 3: 50, 100 and 200 clients enter and
	// leave 200 barriers, and more.
	"paper-table-3": {"workload": "double-barrier", "contenders": "50,100,200", "rounds": "200", "count": "1"},
}

// applyPreset sets the flags of a preset that were not given.
func applyPreset(f *flag.FlagSet, name string) error {
	preset, ok := presets[name]
	if !ok {
		return fmt.Errorf("-preset %q is unknown; one of %s", name, strings.Join(slices.Sorted(maps.Keys(presets)), ", "))
	}
	given := given(f)
	for _, flag := range slices.Sorted(maps.Keys(preset)) {
		if given[flag] {
			continue
		}
		if err := f.Set(flag, preset[flag]); err != nil {
			return fmt.Errorf("-preset %s: -%s: %w", name, flag, err)
		}
	}
	return nil
}
