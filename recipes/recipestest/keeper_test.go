package recipestest_test

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

var updateSkipped = flag.Bool("update", false, "rewrite testdata/not-on-keeper.txt")

// notOnKeeper lists the tests of the contract that cannot hold on ClickHouse Keeper, and why.
const notOnKeeper = "testdata/not-on-keeper.txt"

// TestContractOnKeeper runs the contract on what is published about ClickHouse Keeper. The tests that
// it skips are those of the list. In make test-all and .ci/suite keeper, each of them must fail if it
// runs in spite of that. make test runs a tenth of the contract.
func TestContractOnKeeper(t *testing.T) {
	for _, like := range zkserver.Keepers() {
		t.Run(like.String(), func(t *testing.T) {
			s := must.Get(zkserver.Listen(zkserver.Config{
				Like: like, MinSessionTimeout: 400 * time.Millisecond, MaxSessionTimeout: time.Minute,
			}))(t)
			t.Cleanup(func() { s.Close() })
			env := recipestest.Env{Open: zookeeper.Open, Servers: func(testing.TB) []string { return []string{s.Addr()} }}
			var mu sync.Mutex
			var skipped []string
			ran := 0 // fewer than all with -run, and in make test
			t.Run("contract", func(t *testing.T) {
				for i, p := range recipestest.Parts() {
					if i%10 != 0 && !testall.On() {
						continue // on two processors all of them take minutes
					}
					t.Run(p.Group+"/"+p.Name, func(t *testing.T) {
						t.Parallel()
						mu.Lock()
						ran++
						mu.Unlock()
						r := p.Check(watchdog.Bounded(t), env)
						for _, failure := range r.Failures {
							t.Error(failure)
						}
						if r.Skipped == "" {
							return
						}
						mu.Lock()
						skipped = append(skipped, p.Group+": "+p.Name+": "+strings.TrimPrefix(r.Skipped, "NOT TESTED: "))
						mu.Unlock()
						if testall.On() {
							fails(t, p, env)
						}
						t.Skip(r.Skipped)
					})
				}
			})
			if ran == len(recipestest.Parts()) {
				slices.Sort(skipped)
				compareSkipped(t, strings.Join(skipped, "\n")+"\n")
			}
		})
	}
}

// unlikely bounds a test that should fail. On a busy machine one that passes later is not noticed.
const unlikely = 5 * time.Second

// fails checks that a test of what the servers lack does not pass.
func fails(t *testing.T, p recipestest.Part, env recipestest.Env) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), unlikely)
	defer cancel()
	if r := p.Check(ctx, env.Insist()); r.Skipped == "" && len(r.Failures) == 0 {
		t.Error("it is skipped, but it passes")
	}
}

func compareSkipped(t *testing.T, got string) {
	t.Helper()
	if *updateSkipped {
		must.Do(t, os.WriteFile(notOnKeeper, []byte(got), 0o644))
		return
	}
	if want := string(must.Get(os.ReadFile(notOnKeeper))(t)); got != want && !t.Failed() {
		t.Errorf("the skipped tests are not those of %s; -update writes it:\n%s", notOnKeeper, got)
	}
}
