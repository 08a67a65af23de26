package recipestest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// notOnKeeper are the tests of the contract that cannot hold on what is played as ClickHouse Keeper, by
// a part of their names, and why.
var notOnKeeper = []struct{ part, why string }{}

func whyNotOnKeeper(name string) string {
	for _, n := range notOnKeeper {
		if strings.Contains(name, n.part) {
			return n.why
		}
	}
	return ""
}

// TestContractOnKeeper runs the contract on what is published about ClickHouse Keeper. A test that is
// listed, but passes, fails.
func TestContractOnKeeper(t *testing.T) {
	for _, like := range zkserver.Keepers() {
		t.Run(like.String(), func(t *testing.T) {
			s := must.Get(zkserver.Listen(zkserver.Config{
				Like: like, MinSessionTimeout: 400 * time.Millisecond, MaxSessionTimeout: time.Minute,
			}))(t)
			t.Cleanup(func() { s.Close() })
			env := recipestest.Env{Open: zookeeper.Open, Servers: func(testing.TB) []string { return []string{s.Addr()} }}
			t.Run("contract", func(t *testing.T) {
				for _, p := range recipestest.Parts() {
					name := p.Group + "/" + p.Name
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						onKeeper(t, p, env, whyNotOnKeeper(name))
					})
				}
			})
		})
	}
}

// unlikely bounds a test that is listed. On a busy machine it may not pass in time, and is not noticed.
const unlikely = 20 * time.Second

func onKeeper(t *testing.T, p recipestest.Part, env recipestest.Env, why string) {
	t.Helper()
	ctx := watchdog.Bounded(t)
	if why != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, unlikely)
		defer cancel()
	}
	r := p.Check(ctx, env)
	switch {
	case why != "" && r.Skipped == "" && len(r.Failures) == 0:
		t.Errorf("it passes; the list says: %s", why)
	case why != "":
		t.Skip(why)
	case r.Skipped != "":
		t.Skip(r.Skipped)
	}
	for _, failure := range r.Failures {
		t.Error(failure)
	}
}
