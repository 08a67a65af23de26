package interop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// floor has sessions delete znodes in turn, each when it sees that the one before has
// been deleted. The znodes and the watches are made before.
// There are as many as milliseconds in the window, and at least one for each session.
func floor(tb testing.TB, conns []*zk.Conn, window time.Duration) float64 {
	length := max(int(window.Milliseconds()), len(conns))
	const path = "/peers/floor"
	if _, err := conns[0].Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		tb.Fatal(err)
	}
	znodes, events := make([]string, length), make([]<-chan zk.Event, length)
	atOnce(tb, length, func(_ context.Context, i int) (err error) {
		if znodes[i], err = conns[i%len(conns)].Create(path+"/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
			return err
		}
		next := conns[(i+1)%len(conns)]
		if _, err = next.Sync(path); err != nil {
			return err
		}
		_, _, events[i], err = next.GetW(znodes[i])
		return err
	})
	var chain errgroup.Group
	begun := time.Now()
	for c := range conns {
		chain.Go(func() error {
			for i := c; i < length; i += len(conns) {
				if i > 0 {
					<-events[i-1]
				}
				if err := conns[c].Delete(znodes[i], -1); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := chain.Wait(); err != nil {
		tb.Fatal(err)
	}
	return float64(length) / time.Since(begun).Seconds()
}

// bare is a create and a delete, which exclude nobody.
type bare struct {
	conn        *zk.Conn
	path, znode string
}

func newBare(tb testing.TB, conn *zk.Conn, path string) *bare {
	if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		tb.Fatal(err)
	}
	return &bare{conn: conn, path: path}
}

func (b *bare) acquire(context.Context) (err error) {
	b.znode, err = b.conn.Create(b.path+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	return err
}

func (b *bare) release(context.Context) error { return b.conn.Delete(b.znode, -1) }
