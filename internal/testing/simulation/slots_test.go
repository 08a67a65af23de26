package simulation

import "testing"

// TestSlots has seeds of its own, so that those of the other scenarios stay what they are.
func TestSlots(t *testing.T) {
	for _, sc := range []scenario{
		{name: "slots", line: slotsPath, paths: []string{"/slots/0", "/slots/1"}, begin: slotted},
		resumed("slots in a resumed session", none, slotsKind),
	} {
		for seed := uint64(1); seed <= uint64(number(40, 10)); seed++ {
			for _, v := range simulateScenario(t, sc, seed).Violations {
				t.Errorf("seed %d of %s: %v", seed, sc.name, v)
			}
		}
	}
}
