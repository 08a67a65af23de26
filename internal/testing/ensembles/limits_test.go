package ensembles_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A server with enforce.auth.enabled refuses sessions without a user. A server with enforceQuota
// refuses what exceeds a quota. Both settings exist since ZooKeeper 3.7.
func TestEnsembleWithEnforcedAuthenticationAndQuotas(t *testing.T) {
	notBefore35(t)
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties["zookeeper.enforce.auth.enabled"] = "true"
	cfg.SystemProperties["zookeeper.enforce.auth.schemes"] = "digest"
	cfg.SystemProperties["zookeeper.enforceQuota"] = "true"
	server := ensembletest.Start(t, cfg).Server(0)

	session := recipes.SessionConfig{Servers: []string{server.Addr()}, MaxPacket: 64 << 10}
	t.Run("a session without a user", func(t *testing.T) {
		s, err := zookeeper.Open(t.Context(), session)
		if err == nil {
			defer s.Close(zktest.Bounded(t))
			_, err = must.Get(s.Configuration("/configuration"))(t).Get(t.Context(), "key")
		}
		if !errors.Is(err, recipes.ErrSASLRequired) || !strings.Contains(err.Error(), "enforce.auth") {
			t.Errorf("got %v", err)
		}
	})

	session.Digest = &recipes.Digest{User: "jane", Password: "secret"}
	g := gateTo(server)
	s := must.Get(zookeeper.Dialer(g.dial).Open(t.Context(), session))(t)
	defer s.Close(zktest.Bounded(t))
	t.Run("a session with a user reconnects", func(t *testing.T) {
		hold := must.Get(must.Get(s.Lock("/lock", recipes.LockConfig{}))(t).Acquire(t.Context()))(t)
		g.move(server.Addr())
		must.Do(t, hold.Write(t.Context(), recipes.Create("/written", nil)))
		must.Do(t, hold.Release(t.Context()))
	})
	t.Run("quotas", func(t *testing.T) { quotas(t, s, server.Addr()) })
}

// quotas checks what a client finds at a path whose quota is used up.
func quotas(t *testing.T, s recipes.Client, addr string) {
	raw := zktest.Raw(t, addr)
	must.Do(t, raw.AddAuth("digest", []byte("jane:secret")))
	create := func(path, data string) {
		t.Helper()
		must.Get(raw.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)))(t)
	}
	// The limit of the lock is one contender that makes guarded writes, for which it needs a
	// znode and its parent. The path counts too.
	for path, limit := range map[string]string{"/locks": "4", "/elements": "8"} {
		create(path, "")
		create("/zookeeper/quota"+path, "")
		create("/zookeeper/quota"+path+"/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit="+limit)
		create("/zookeeper/quota"+path+"/zookeeper_stats", "count=1,bytes=0")
	}
	l := must.Get(s.Lock("/locks", recipes.LockConfig{}))(t)
	hold := must.Get(l.Acquire(t.Context()))(t)
	must.Do(t, hold.Write(t.Context()))
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, recipes.ErrQuota) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := l.Acquire(t.Context())
	refused("a second contender", err)
	refused("a guarded write", hold.Write(t.Context(), recipes.Create("/locks/written", nil)))
	if children, _, err := raw.Children("/locks"); err != nil || len(children) != 2 {
		t.Errorf("znodes %q, %v; want the holder and the parent of its guard", children, err)
	}
	must.Do(t, hold.Write(t.Context()))
	must.Do(t, hold.Release(t.Context()))
	must.Do(t, must.Get(l.Acquire(t.Context()))(t).Release(t.Context()))

	q := zktest.QueueOf(t, s, "/elements", recipes.QueueConfig{})
	for err = nil; err == nil; {
		_, err = q.Put(t.Context(), []byte("element"))
	}
	refused("an element too many", err)
	_, err = q.Receive(t.Context())
	refused("a claim", err)
	must.Get(q.Take(t.Context()))(t)
	must.Get(q.Put(t.Context(), []byte("another")))(t)
}
