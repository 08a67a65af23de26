package recipestest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Env is what the contract is tested on.
type Env struct {
	// Open is the implementation. Its servers are given as the address of a relay on
	// 127.0.0.1.
	Open recipes.Opener

	// Servers returns the addresses of the ZooKeeper servers for one test, or skips
	// the test. It is called once for each test. Tests share the servers: each uses
	// another path. The servers must grant session timeouts from half a second to ten
	// seconds, and remove empty containers within seconds.
	Servers func(testing.TB) []string
}

// test is one sentence of the contract.
type test struct {
	name string
	run  func(*fixture)
}

// group is the tests of one recipe.
type group struct {
	name  string
	tests []test
}

func groups() []group {
	return []group{
		{"session", sessionTests()},
		{"contenders", contendersTests()},
		{"lock", append(forKinds(lockKinds(), lineTests()), lockTests()...)},
		{"write", forKinds([]kind{lockKind(recipes.DefaultStrategy), electionKind(recipes.DefaultStrategy)}, writeTests())},
		{"election", append(forKinds(electionKinds(), lineTests()), electionTests()...)},
		{"context", contextTests()},
		{"queue", queueTests()},
		{"transaction", transactionTests()},
		{"shared lock", append(forKinds(sharedKinds(), lineTests()), sharedLockTests()...)},
		{"semaphore", append(forKinds(semaphoreKinds(), lineTests()), semaphoreTests()...)},
		{"slots", slotsTests()},
		{"revocable", revokeTests()},
		{"priority lock", priorityTests()},
		{"context of the line", lineContextTests()},
		{"group", groupTests()},
		{"latch", latchTests()},
		{"counter", counterTests()},
		{"configuration", configurationTests()},
		{"names", namesTests()},
		{"double barrier", doubleBarrierTests()},
		{"barrier", barrierTests()},
		{"dialect", dialectTests()},
	}
}

// Run tests the contract. It returns when all its tests have ended.
func Run(t *testing.T, env Env) {
	t.Run("contract", func(t *testing.T) {
		for _, g := range groups() {
			t.Run(g.name, func(t *testing.T) {
				t.Parallel()
				for _, test := range g.tests {
					t.Run(test.name, func(t *testing.T) {
						t.Parallel()
						test.run(newFixture(t, env))
					})
				}
			})
		}
	})
	t.Log("contract tests: " + Summary())
}

// Summary says in one line how many tests there are for each recipe.
func Summary() string {
	total := 0
	var counts []string
	for _, g := range groups() {
		total += len(g.tests)
		counts = append(counts, fmt.Sprintf("%s %d", g.name, len(g.tests)))
	}
	return fmt.Sprintf("%s; %d in all", strings.Join(counts, ", "), total)
}
