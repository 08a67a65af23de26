package session_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

func TestCredentialsAreGivenAgainAfterAReconnect(t *testing.T) {
	check := func(t *testing.T, cfg recipes.SessionConfig, cut func(s *session.Session)) {
		cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
		cfg.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
		s, ctx := open(t, cfg), zktest.Bounded(t)
		path := must.Get(s.CreateProtected(ctx, "/private", "lock-", nil))(t)
		cfg.Digest, cfg.ACL = nil, nil
		if _, err := open(t, cfg).Get(ctx, path); !errors.Is(err, recipes.ErrAccessDenied) {
			t.Fatalf("a stranger reads: %v", err)
		}
		cut(s)
		if _, err := s.Get(ctx, path); err != nil {
			t.Fatalf("after the reconnect: %v", err)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		srv := embedded(t)
		check(t, to(srv), func(s *session.Session) { cutAndWait(t, srv, s) })
	})
	t.Run("real", func(t *testing.T) {
		check(t, recipes.SessionConfig{Servers: ensembletest.Shared(t).Addrs()}, func(*session.Session) {})
	})
}

// A server that refuses the credentials answers, and each handshake keeps the session alive at
// the server. The session must still end.
func TestRefusedCredentialsEndTheSession(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
	refusing := newRefuser(t, srv.Addr(), opAuth, errAuthFailed)
	cfg.Servers = []string{refusing.addr}
	s := open(t, cfg)
	refusing.refuse.Store(true)
	srv.CloseConnection(s.ID())
	if err := awaitLost(t, s); !errors.Is(err, recipes.ErrAuthFailed) {
		t.Fatalf("lost with %v", err)
	}
}

// go-zookeeper/zk#163: a failed re-authentication can wedge the connection.
func TestAFailedReauthenticationIsTriedAgainOrEndsTheSession(t *testing.T) {
	for _, times := range []int{1, 3, -1} {
		onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, _ *session.Session) {
			cfg := recipes.SessionConfig{Servers: []string{"server"}, Digest: &recipes.Digest{User: "jane", Password: "secret"}}
			s := must.Get(session.Open(t.Context(), cfg, dialPipe(srv)))(t)
			defer closeNow(s)
			left := times
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.Op != zkserver.OpAuth || left == 0 {
					return zkserver.Fault{}
				}
				left--
				return zkserver.Fault{CloseBefore: true}
			})
			srv.CloseConnection(s.ID())
			if times < 0 {
				if err := awaitLost(t, s); !errors.Is(err, recipes.ErrSessionLost) {
					t.Error(err)
				}
			} else if _, err := s.Children(zktest.Bounded(t), "/"); err != nil {
				t.Errorf("after %d failures: %v", times, err)
			}
		})
	}
}

// refusal opens a session until an attempt fails with text.
func refusal(t *testing.T, cfg recipes.SessionConfig, text string) {
	t.Helper()
	said := "nothing"
	for ctx, step := zktest.Bounded(t), 250*time.Millisecond; ctx.Err() == nil; step *= 2 { // a busy machine needs more
		short, cancel := context.WithTimeout(ctx, step)
		s, err := session.Open(short, cfg, nil)
		cancel()
		if err == nil {
			_ = s.Close(ctx)
			continue
		}
		if said = err.Error(); errors.Is(err, recipes.ErrUnavailable) && strings.Contains(said, text) {
			return
		}
	}
	t.Errorf("got %s; want %q", said, text)
}

// A client with TLS and a server without it. TestTLSToARealServer has the reverse.
func TestRefusalByTLSIsExplained(t *testing.T) {
	refusal(t, recipes.SessionConfig{Servers: []string{embedded(t).Addr()}, TLS: &recipes.TLS{CA: newAuthority(t).PEM}},
		"probably the server speaks no TLS there")
}

// The error names the scheme that the server refuses.
func TestRefusedSchemeIsNamed(t *testing.T) {
	srv := must.Get(zkserver.Listen(zkserver.Config{DisableDigest: true}))(t)
	defer srv.Close()
	cfg := to(srv)
	cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
	_, err := session.Open(zktest.Bounded(t), cfg, nil)
	if !errors.Is(err, recipes.ErrAuthFailed) || !strings.Contains(err.Error(), "authenticate with digest: ") {
		t.Errorf("got %v", err)
	}
}

// If the ACL allows only the creator to write, no other client may write, not even with the
// identity that sessions share. A server grants the creator's rights to every identity of the
// connection. So the identity of such a session is derived from its user's credentials.
func TestTheIdentityOpensNothingToOthers(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	for _, user := range []string{"me", "you"} {
		s := must.Get(zookeeper.Open(ctx, recipes.SessionConfig{
			Servers: []string{srv.Addr()},
			Digest:  &recipes.Digest{User: user, Password: "secret"},
			ACL: []recipes.ACL{
				{Permissions: recipes.PermAll, Scheme: "auth"},
				{Permissions: recipes.PermRead, Scheme: "world", ID: "anyone"},
			},
		}))(t)
		t.Cleanup(func() { s.Close(ctx) })
		for _, dir := range []string{"/" + user + "/a", "/" + user + "/b"} {
			l := must.Get(s.Lock(dir, recipes.LockConfig{Strategy: recipes.Handoff}))(t)
			for range 2 {
				h := must.Get(l.Acquire(ctx))(t)
				must.Do(t, h.Write(ctx, recipes.Create(dir+"/"+path.Base(h.Znode())+"-wrote", nil)))
				must.Do(t, h.Release(ctx))
			}
			must.Get(l.Acquire(ctx))(t) // not released
		}
		must.Get(must.Get(s.Group("/"+user+"/g", recipes.GroupConfig{Name: "n"}))(t).Join(ctx, nil))(t)
	}
	stranger := zktest.Raw(t, srv.Addr())
	must.Do(t, stranger.AddAuth("digest", []byte("zkrecipes:handoff")))
	lists, places := make(map[string]bool), 0
	for _, n := range srv.Tree() {
		top, _, _ := strings.Cut(strings.TrimPrefix(n.Path, "/"), "/")
		if top == "zookeeper" || top == "" {
			continue
		}
		for _, a := range n.ACL {
			if a.Scheme == "digest" && !strings.HasPrefix(a.ID, top+":") {
				lists[a.ID] = true
			}
		}
		if _, err := stranger.Set(n.Path, nil, -1); err != zk.ErrNoAuth {
			t.Errorf("a stranger writes to %s: %v", n.Path, err)
		}
		if _, err := stranger.Create(n.Path+"/x", nil, 0, zk.WorldACL(zk.PermAll)); err != zk.ErrNoAuth && err != zk.ErrNoChildrenForEphemerals {
			t.Errorf("a stranger creates below %s: %v", n.Path, err)
		}
		places++
	}
	if len(lists) != 2 || places < 10 {
		t.Errorf("two users have %d identities, in %d znodes", len(lists), places)
	}
}

// byCreator configures a session whose znodes only its user may change.
func byCreator(addr string) recipes.SessionConfig {
	return recipes.SessionConfig{
		Servers: []string{addr},
		Digest:  &recipes.Digest{User: "me", Password: "secret"},
		ACL:     []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}},
	}
}

// onlyByUser checks that no other user may change the znodes of such a session.
func onlyByUser(t *testing.T, addr string, paths ...string) {
	t.Helper()
	raw := zktest.Raw(t, addr)
	must.Do(t, raw.AddAuth("digest", []byte("me:secret")))
	for _, path := range paths {
		// The server also adds the shared identity if the connection had sent it.
		if acl, _, err := raw.GetACL(path); err != nil || !strings.HasPrefix(acl[0].ID, "me:") || slices.ContainsFunc(acl, func(a zk.ACL) bool { return a.Scheme != "digest" }) {
			t.Errorf("%s has the ACL %v (%v)", path, acl, err)
		}
	}
}

// The znodes that a resumed session creates belong to its user.
func TestAResumedSessionCreatesAsItsUser(t *testing.T) {
	zktest.Everywhere(t, func(t *testing.T, addr, at string) {
		for _, strategy := range recipes.Strategies() {
			ctx, at, cfg := zktest.Bounded(t), at+"-"+string(strategy), byCreator(addr)
			first := must.Get(zookeeper.Open(ctx, cfg))(t)
			lock := func(s recipes.Client) recipes.Lock {
				return must.Get(s.Lock(at, recipes.LockConfig{Strategy: strategy}))(t)
			}
			had := must.Get(lock(first).Acquire(ctx))(t)
			must.Do(t, first.(zktest.Movable).Detach(ctx))
			second := must.Get(zookeeper.Resume(ctx, cfg, first.(zktest.Movable).ResumeTicket(), time.Now()))(t)
			t.Cleanup(func() { second.Close(context.Background()) })
			taken := must.Get(lock(second).(zktest.Taker[recipes.Hold]).Resume(ctx, had.Znode(), had.Token()))(t)
			must.Do(t, second.(zktest.Movable).DropRest(ctx))
			must.Do(t, taken.Write(ctx, recipes.Create(at+"-written", nil)))
			must.Do(t, taken.Release(ctx)) // the handoff writes with the identity
			must.Get(must.Get(second.Counter(at+"-counter", recipes.CounterConfig{}))(t).Add(ctx, 1))(t)
			onlyByUser(t, addr, at+"-counter", at+"-written")
		}
	})
}
