package recipestest

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func openTests() []test {
	return []test{
		{"open/a bad configuration is ErrInvalid", func(f *fixture) {
			good := []string{f.listen().Addr()}
			for name, cfg := range map[string]recipes.SessionConfig{
				"no servers":         {},
				"an empty server":    {Servers: []string{""}},
				"a bad port":         {Servers: []string{"127.0.0.1:port"}},
				"a URL":              {Servers: []string{"http://127.0.0.1:1"}},
				"a relative chroot":  {Servers: good, Chroot: "a"},
				"a slashed chroot":   {Servers: good, Chroot: "/a/"},
				"a negative timeout": {Servers: good, SessionTimeout: -time.Second},
				"a tiny timeout":     {Servers: good, SessionTimeout: time.Microsecond},
				"a huge timeout":     {Servers: good, SessionTimeout: 1 << 31 * time.Millisecond},
				"a negative connect": {Servers: good, ConnectTimeout: -time.Second},
				"a tiny packet":      {Servers: good, MaxPacket: 1},
				"a tiny listing":     {Servers: good, MaxListing: 1},
				"negative reads":     {Servers: good, ReadsPerSecond: -1},
				"too many reads":     {Servers: good, ReadsPerSecond: 1e9},
				"a user with colon":  {Servers: good, Digest: &recipes.Digest{User: "a:b"}},
				"no user":            {Servers: good, Digest: &recipes.Digest{Password: "p"}},
				"SASL by PLAIN":      {Servers: good, SASL: &recipes.SASL{Mechanism: "PLAIN", User: "u", Password: "p"}},
				"SASL, no password":  {Servers: good, SASL: &recipes.SASL{Mechanism: "DIGEST-MD5", User: "u"}},
				"SASL by nothing":    {Servers: good, SASL: &recipes.SASL{Mechanism: "GSSAPI", User: "u"}},
				"SASL, relative":     {Servers: good, SASL: &recipes.SASL{Mechanism: "GSSAPI", CCache: "krb5cc_0"}},
				"no ACL scheme":      {Servers: good, ACL: []recipes.ACL{{Permissions: recipes.PermAll}}},
				"no permissions":     {Servers: good, ACL: []recipes.ACL{{Scheme: "world", ID: "anyone"}}},
				"a bad CA":           {Servers: good, TLS: &recipes.TLS{CA: []byte("no PEM")}},
				"a bad key pair":     {Servers: good, TLS: &recipes.TLS{Certificate: []byte("x"), Key: []byte("y")}},
			} {
				s, err := f.opener(f.ctx, cfg)
				if err == nil {
					f.close(s)
					f.Errorf("%s: opened", name)
					continue
				}
				f.is(err, recipes.ErrInvalid)
				f.isNot(err, recipes.ErrUnavailable, recipes.ErrSessionLost)
			}
		}},
		{"open/without a listener it is ErrUnavailable when the context ends", func(f *fixture) {
			ctx, cancel := context.WithTimeout(f.ctx, 50*brief)
			defer cancel()
			err := f.fails(ctx, noListener)
			f.is(err, recipes.ErrUnavailable, context.DeadlineExceeded)
			f.failIf(!strings.Contains(err.Error(), "refused"), "%q does not name the error of the last attempt", err)
		}},
		{"open/without an answer it is ErrUnavailable when the context ends", func(f *fixture) {
			f.is(f.fails(f.briefly(), f.silent()), recipes.ErrUnavailable, context.DeadlineExceeded)
		}},
		{"open/a call with a context that has ended opens no session", func(f *fixture) {
			f.is(f.fails(f.ended(), f.listen().Addr()), context.Canceled)
		}},
		{"open/a cancelled call returns the context's error", func(f *fixture) {
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			addr := f.silent()
			call := startErr(f, func() error { return f.fails(ctx, addr) })
			cancel()
			f.is(call.failure(f), context.Canceled)
		}},
		{"open/one server of several is enough", func(f *fixture) {
			dead := []string{noListener, noListener}
			f.acquire(f.open(func(c *recipes.SessionConfig) { c.Servers = append(dead, c.Servers...) }), f.path("a"))
		}},
		{"open/the session does not end with the context that opened it", func(f *fixture) {
			ctx, cancel := context.WithCancel(f.ctx)
			s, err := f.opener(ctx, recipes.SessionConfig{Servers: []string{f.listen().Addr()}})
			cancel()
			f.must(err)
			defer f.close(s)
			f.acquire(s, f.path("a"))
		}},
	}
}

// fails opens a session, which must fail before the default timeout. It returns the error.
func (f *fixture) fails(ctx context.Context, servers ...string) error {
	f.Helper()
	begun := time.Now()
	s, err := f.opener(ctx, recipes.SessionConfig{Servers: servers})
	if err == nil {
		f.close(s)
		f.Fatal("opened")
	}
	took := time.Since(begun)
	f.failIf(took >= recipes.DefaultOpenTimeout, "it took %v", took)
	return err
}

// silent returns the address of a listener that accepts connections and sends nothing.
func (f *fixture) silent() string {
	f.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(f)
	f.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// noListener is an address without a listener. A port that was just free could be assigned to
// a concurrent test; port 1 never is.
const noListener = "127.0.0.1:1"
