package zookeeper_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Servers that compute digests by SHA3-256, as in FIPS mode, do not recognize the identity in our
// ACLs. A release then grants nothing, and the next contender lists the wait queue. Nothing else
// changes.
func TestServersWithAnotherDigest(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties = map[string]string{"zookeeper.DigestAuthenticationProvider.digestAlg": "SHA3-256"}
	addr := ensembletest.Start(t, cfg).Server(0).Addr()
	ctx := zktest.Bounded(t)
	for name, c := range map[string]recipes.SessionConfig{
		"open":    {},
		"creator": {Digest: &recipes.Digest{User: "u", Password: "p"}, ACL: []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}},
	} {
		open := func() recipes.Client {
			c.Servers = []string{addr}
			s := must.Get(zookeeper.Open(ctx, c))(t)
			t.Cleanup(func() { must.Report(t, s.Close(ctx)) })
			return s
		}
		waits := make(chan recipes.Place, 1)
		waiter := open()
		first := must.Get(open().Lock("/"+name, recipes.LockConfig{}))(t)
		next := must.Get(waiter.Lock("/"+name, recipes.LockConfig{Joined: func(p recipes.Place) { waits <- p }}))(t)
		for range 3 {
			h := must.Get(first.Acquire(ctx))(t)
			granted := zktest.Go(ctx, next.Acquire)
			<-waits
			must.Do(t, h.Release(ctx))
			got := <-granted
			must.Do(t, got.Err)
			must.Do(t, got.Got.Release(ctx))
		}
		if stats := must.Get(waiter.Stats(ctx))(t); stats.Handoffs != 0 || stats.Fallbacks == 0 {
			t.Errorf("%s: %+v; want no handoffs, but fallbacks", name, stats)
		}
	}
}
