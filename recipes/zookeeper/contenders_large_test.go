package zookeeper_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A path with 60,000 children can be read, and the reads of its children share writes. Reading
// them one at a time, or with work that grows with the square of their number, used to exceed the
// caller's timeout.
func TestManyChildrenAreReadTogether(t *testing.T) {
	const children = 60_000
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		fill := func(path, name string, flags int32) {
			must.Get(s.Raw.Create(path, nil, 0, zk.WorldACL(zk.PermAll)))(s.T)
			const perSession = 5_000 // ZooKeeper could not log the end of a session with all of them
			const together = 1_000
			for n := 0; n < children; n += perSession {
				raw := zktest.Raw(s.T, s.Addr)
				for range perSession / together {
					ops := make([]any, together)
					for i := range ops {
						ops[i] = &zk.CreateRequest{Path: path + "/" + name, Acl: zk.WorldACL(zk.PermAll), Flags: flags}
					}
					must.Get(raw.Multi(ops...))(s.T)
				}
			}
		}
		line, members, keys, other := s.Path+"-line", s.Path+"-members", s.Path+"-keys", s.Path+"-other"
		fill(line, "_c_01234567-0123-0123-0123-0123456789ab-lock-", zk.FlagEphemeral|zk.FlagSequence)
		fill(other, "theirs-", zk.FlagEphemeral|zk.FlagSequence)
		fill(members, "member", zk.FlagEphemeral|zk.FlagSequence)
		fill(keys, "key", zk.FlagSequence)

		var writes atomic.Int64
		c := must.Get(zookeeper.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return countedConn{conn, &writes}, err
		}).Open(s.Ctx, recipes.SessionConfig{Servers: []string{s.Addr}}))(s.T)
		defer c.Close(context.WithoutCancel(s.Ctx))
		for _, r := range []struct {
			what string
			read func() (int, error)
		}{
			{"contenders", func() (int, error) {
				lines, err := c.Contenders(s.Ctx, line)
				return len(lines.Of(recipes.KindLock)), err
			}},
			{"znodes of unknown programs", func() (int, error) {
				lines, err := c.Contenders(s.Ctx, other)
				return lines.Unknown, err
			}},
			{"members", func() (int, error) {
				all, err := must.Get(c.Group(members, recipes.GroupConfig{}))(s.T).Members(s.Ctx)
				return len(all), err
			}},
			{"names", func() (int, error) {
				all, err := zktest.NamesAt(s.T, c, members).List(s.Ctx)
				return len(all), err
			}},
			{"keys", func() (int, error) {
				all, err := zktest.ConfigAt(s.T, c, keys).Snapshot(s.Ctx)
				return len(all) - 1, err // the path itself is the key ""
			}},
		} {
			before := writes.Load()
			n, err := r.read()
			sent := writes.Load() - before
			s.Logf("%d %s in %d writes", n, r.what, sent)
			if err != nil || n != children || sent > children/40 {
				s.Errorf("%d of %d %s in %d writes, %v", n, children, r.what, sent, err)
			}
		}
	})
}

// countedConn counts the writes to a connection.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}
