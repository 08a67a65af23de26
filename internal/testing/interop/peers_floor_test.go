package interop_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// floor has sessions delete znodes in turn, each when it sees that the one before has
// been deleted. The znodes and the watches are made before.
// There are as many as milliseconds in the window, and at least one for each session.
func floor(tb testing.TB, conns []*zk.Conn, window time.Duration, remove func(*zk.Conn, string) error) float64 {
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
		// A leader answers a sync although it has not applied a write that a follower has
		// answered, so it may not have the znode yet.
		for {
			if _, _, events[i], err = next.GetW(znodes[i]); !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		}
	})
	var chain errgroup.Group
	begun := time.Now()
	for c := range conns {
		chain.Go(func() error {
			for i := c; i < length; i += len(conns) {
				if i > 0 {
					<-events[i-1]
				}
				if err := remove(conns[c], znodes[i]); err != nil {
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

func deletes(c *zk.Conn, znode string) error { return c.Delete(znode, -1) }

// handsOver deletes a znode in the transaction by which a release hands over: it writes the
// znode first, which tells the next in line that it was a release.
func handsOver(c *zk.Conn, znode string) error {
	_, err := c.Multi(&zk.SetDataRequest{Path: znode, Version: 0}, &zk.DeleteRequest{Path: znode, Version: 1})
	return err
}

// plain is a lock with a wait queue that sends the least that one can: a create, a read
// that leaves a watch on the znode before, a delete. A session that dies breaks it, an
// answer that is lost too. It shows what the servers and go-zookeeper take of a cycle.
type plain struct {
	conn        *zk.Conn
	path, znode string
}

func newPlain(tb testing.TB, conn *zk.Conn, path string) *plain {
	if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		tb.Fatal(err)
	}
	return &plain{conn: conn, path: path}
}

func (l *plain) acquire(context.Context) (err error) {
	if l.znode, err = l.conn.Create(l.path+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
		return err
	}
	number, err := strconv.Atoi(l.znode[len(l.path+"/lock-"):])
	if err != nil {
		return err
	}
	// No watch stays behind: the predecessor exists until it releases, or is gone.
	_, _, gone, err := l.conn.GetW(fmt.Sprintf("%s/lock-%010d", l.path, number-1))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	} else if err == nil {
		<-gone
	}
	return err
}

func (l *plain) release(context.Context) error { return l.conn.Delete(l.znode, -1) }
