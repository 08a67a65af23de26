package recipestest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Env is the implementation under test and its servers.
type Env struct {
	// Open is the opener of the implementation. The only server in its configuration is
	// the address of a relay on 127.0.0.1.
	Open recipes.Opener

	// Servers returns the addresses of the ZooKeeper servers for one test, or skips
	// the test. It is called once for each test. Tests share the servers and use
	// different paths. The servers must grant session timeouts from half a second to ten
	// seconds, and delete empty containers within seconds.
	Servers func(testing.TB) []string

	// Root is an existing path of the servers. The tests create and change znodes only below
	// it, and do not delete them all. "" is the root of the servers.
	Root string

	insist bool // run tests even if the servers lack what they test
}

// test is one sentence of the contract.
type test struct {
	name string
	run  func(*fixture)
}

// group is the tests of one recipe, or of one property of several recipes.
type group struct {
	name  string
	tests []test
}

// groups returns the groups of the contract. Those of locks and semaphores, a family of recipes, are
// listed where their tests begin.
func groups() []group {
	return append(lockGroups(), []group{
		{"session", sessionTests()},
		{"contenders", contendersTests()},
		{"write", forKinds(append(lockKind.by(recipes.Handoff), electionKind.by(recipes.Handoff)...), writeTests())},
		{"election", slices.Concat(queued(electionKind, recipes.Strategies()...), electionTests())},
		{"context", contextTests()},
		{"queue", queueTests()},
		{"transaction", slices.Concat(transactionTests(), siteDeathTests())},
		{"shared lock", slices.Concat(sharedLockTests(), downgradeTests())},
		{"acquire all", acquireAllTests()},
		{"shares", sharesTests()},
		{"once per", oncePerTests()},
		{"revocable", revokeTests()},
		{"priority lock", slices.Concat(priorityTests(), priorityRevokeTests())},
		{"context of wait queues", lineContextTests()},
		{"group", slices.Concat(groupTests(), membershipTests())},
		{"latch", latchTests()},
		{"counter", counterTests()},
		{"configuration", slices.Concat(configurationTests(), configurationSetTests())},
		{"names", namesTests()},
		{"double barrier", slices.Concat(doubleBarrierTests(), doubleBarrierLeaveTests())},
		{"barrier", barrierTests()},
		{"dialect", slices.Concat(dialectTests(), dialectRecipesTests())},
	}...)
}

// Run runs the tests of the contract. It returns when all of them have ended. It skips the tests
// of what the servers do not support, such as containers before ZooKeeper 3.5, and logs how many.
//
// The tests are subtests contract/GROUP/TEST of t. If -run or -skip leaves none of them, Run fails: a
// wrong pattern must not pass.
func Run(t *testing.T, env Env) {
	var lacking, selected atomic.Int32
	t.Run("contract", func(t *testing.T) {
		for _, g := range groups() {
			t.Run(g.name, func(t *testing.T) {
				t.Parallel()
				for _, test := range g.tests {
					t.Run(test.name, func(t *testing.T) {
						selected.Add(1)
						t.Parallel()
						f := newFixture(t, env)
						defer func() {
							if f.lacking {
								lacking.Add(1)
							}
						}()
						test.run(f)
					})
				}
			})
		}
	})
	if selected.Load() == 0 {
		t.Errorf("-run selects no test of the contract; their names are %s/contract/GROUP/TEST", t.Name())
	}
	t.Log("contract tests: " + summary())
	if n := lacking.Load(); n > 0 {
		t.Logf("%d CONTRACT TESTS WERE SKIPPED: the servers do not support what they test", n)
	}
}

// summary returns one line with the number of tests of each group.
func summary() string {
	total := 0
	var counts []string
	for _, g := range groups() {
		total += len(g.tests)
		counts = append(counts, fmt.Sprintf("%s %d", g.name, len(g.tests)))
	}
	return fmt.Sprintf("%s; %d in all", strings.Join(counts, ", "), total)
}
