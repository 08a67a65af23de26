package simulation

import "testing"

// TestSimulationOfSurvivors simulates sessions whose plugins die, for the recipes without such a
// scenario in the list scenarios.
func TestSimulationOfSurvivors(t *testing.T) {
	simulateEach(t, number(20, 20)/20,
		surviving(scenario{name: "queue", begin: twice(queues)}),
		surviving(scenario{name: "double barrier", line: "/barrier", begin: twice(doubleBarriers)}),
		surviving(scenario{name: "two-phase commit", begin: transactions}),
		surviving(scenario{name: "group", line: groupPath, begin: twice(groups)}),
		surviving(scenario{name: "configuration", begin: twice(configurations)}),
		surviving(scenario{name: "several locks", line: setPaths[1], paths: setPaths, begin: twice(sets)}),
		surviving(scenario{name: "shares", paths: sharePaths(), begin: shares}),
		surviving(scenario{name: "once per period", line: oncePath, paths: []string{oncePath}, begin: periods}))
}
