package zookeeper_test

import (
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Where the server does not take the session's identity, the lock works as by
// predecessor.
func TestAServerWithoutDigest(t *testing.T) {
	check := func(t *testing.T, addr string) {
		s := &scene{T: t, ctx: bounded(t), addr: addr, path: "/digest"}
		first, second := s.join(), s.join()
		for _, c := range []*contender{first, second} {
			if !strings.Contains(c.place.Znode, "_c_") {
				t.Errorf("the place is %s", c.place.Znode)
			}
			hold := s.hold(c)
			if err := hold.Write(s.ctx); err != nil {
				t.Error(err)
			}
			s.release(hold)
			if n := s.counters(c).Fallbacks; n == 0 {
				t.Error("not counted")
			}
		}
	}
	t.Run("embedded", func(t *testing.T) {
		srv := must[*zkserver.Server](t)(zkserver.Listen(zkserver.Config{DisableDigest: true}))
		t.Cleanup(func() { srv.Close() })
		check(t, srv.Addr())
	})
	t.Run("real", func(t *testing.T) {
		cfg := ensembletest.Quick(1)
		cfg.SystemProperties = map[string]string{"zookeeper.DigestAuthenticationProvider.enabled": "false"}
		check(t, ensembletest.Start(t, cfg).Addrs()[0])
	})
}

// Where the server hashes digest credentials otherwise, the identity is not the
// one that the znodes name: nobody may write, so nothing is handed over, and
// everything else works.
func TestAServerWithAnotherDigestAlgorithm(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties = map[string]string{"zookeeper.DigestAuthenticationProvider.digestAlg": "SHA-256"}
	s := &scene{T: t, ctx: bounded(t), addr: ensembletest.Start(t, cfg).Addrs()[0], path: "/digest"}
	first, second := s.join(), s.join()
	s.release(s.hold(first))
	s.release(s.hold(second))
	if c := s.counters(second); c.Handoffs != 0 || c.Fallbacks == 0 {
		t.Errorf("%+v", c)
	}
	again := s.joinWith(second.session, recipes.Handoff)
	if !strings.Contains(again.place.Znode, "_c_") {
		t.Errorf("the place is %s", again.place.Znode)
	}
	s.release(s.hold(again))
}
