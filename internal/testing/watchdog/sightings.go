package watchdog

import "strings"

// sighting is a running test.
type sighting struct {
	test  string // the function that runs it
	stack string
	times int // consecutive checks in which it ran
	still int // the latest of them with the same stack and no busy child
}

// sightings are the running tests of the latest check, by goroutine.
type sightings map[string]sighting

// update compares the stacks of all goroutines with those of the previous check, and
// returns the running tests. busy says that children have used the processor since then.
func (s sightings) update(stacks string, busy bool) (tests []sighting) {
	now := sightings{}
	for block := range strings.SplitSeq(stacks, "\n\n") {
		header, stack, _ := strings.Cut(block, "\n")
		test, ok := runs(stack)
		if !ok {
			continue
		}
		goroutine, _, _ := strings.Cut(strings.TrimPrefix(header, "goroutine "), " ")
		seen := s[goroutine]
		if busy || seen.stack != stack {
			seen.still = 0
		}
		seen.test, seen.stack = test, stack
		seen.times++
		seen.still++
		now[goroutine] = seen
		tests = append(tests, seen)
	}
	clear(s)
	for goroutine, seen := range now {
		s[goroutine] = seen
	}
	return tests
}

// runs returns the test whose goroutine has this stack. It returns false for other
// goroutines, and for tests that wait for their subtests, their bubble or a parallel slot.
func runs(stack string) (test string, ok bool) {
	above, _, ok := strings.Cut("\n"+stack, "\ntesting.tRunner(")
	if !ok {
		return "", false
	}
	for _, waits := range []string{
		"\ntesting.(*T).Run(", "\ntesting/synctest.Test(", "\ntesting.(*T).Parallel(", "\ntesting.tRunner.",
	} {
		if strings.Contains(above, waits) {
			return "", false
		}
	}
	// Each frame is two lines: the function, and where it is.
	lines := strings.Split(strings.TrimSpace(above), "\n")
	if len(lines) < 2 {
		return "", false
	}
	test = lines[len(lines)-2]
	if i := strings.LastIndex(test, "("); i > 0 {
		test = test[:i]
	}
	return test, true
}
