package main

import "testing"

func TestStatTellsTheTimeOfOurJava(t *testing.T) {
	const stat = "4242 (java) S 17 4242 17 0 -1 4194304 1 2 3 4 250 150 7 8 20 0 1 0 99 1 1"
	if seconds, mine := parseStat(stat, 17); !mine || seconds != 4 {
		t.Errorf("%v, %v; want 4 seconds", seconds, mine)
	}
	for _, other := range []string{
		"4242 (java) S 18 4242 17 0 -1 4194304 1 2 3 4 250 150 7",
		"4242 (a (java) b) S 17 4242 17 0 -1 4194304 1 2 3 4 250 150 7", "", "4242 (java) S 17",
	} {
		if _, mine := parseStat(other, 17); mine {
			t.Errorf("%q was taken for ours", other)
		}
	}
}
