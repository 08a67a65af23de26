package simulation

import "testing"

// TestSimulationOfSurvivors simulates sessions whose plugins die, for the recipes without such a
// scenario in the list scenarios.
func TestSimulationOfSurvivors(t *testing.T) {
	for _, sc := range []scenario{
		{name: "queue", begin: twice(queues)},
		{name: "double barrier", line: "/barrier", begin: twice(doubleBarriers)},
		{name: "two-phase commit", begin: transactions},
		{name: "group", line: groupPath, begin: twice(groups)},
		{name: "configuration", begin: twice(configurations)},
		{name: "several locks", line: setPaths[1], paths: setPaths, begin: twice(sets)},
		{name: "shares", paths: sharePaths(), begin: shares},
		{name: "once per period", line: oncePath, paths: []string{oncePath}, begin: periods},
	} {
		for i := range max(1, number(20, 20)/20) {
			seed := *first + uint64(i)
			for _, v := range simulateScenario(t, surviving(sc), seed).Violations {
				t.Errorf("seed %d of %s: %v", seed, surviving(sc).name, v)
			}
		}
	}
}
