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

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// floor lets sessions delete znodes in turn, each when it sees that the previous one is
// deleted. It creates the znodes and sets the watches in advance. There is one znode for
// each millisecond of the window, and at least one for each session.
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
		// A leader can answer a sync before it applies a write that a follower has already
		// answered, so the znode may not exist there yet.
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
	must.Do(tb, chain.Wait())
	return float64(length) / time.Since(begun).Seconds()
}

func deletes(c *zk.Conn, znode string) error { return c.Delete(znode, -1) }

// handsOver deletes a znode in the transaction of a release by handoff. The transaction
// first writes the znode, which shows the successor that it was a release.
func handsOver(c *zk.Conn, znode string) error {
	_, err := c.Multi(&zk.SetDataRequest{Path: znode, Version: 0}, &zk.DeleteRequest{Path: znode, Version: 1})
	return err
}

// plain is a lock that sends the fewest requests that a wait queue needs: a create, a read
// that sets a watch on the predecessor, and a delete. A lost session or a lost reply breaks
// it. It shows how much of a cycle the servers and go-zookeeper take.
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
	// No watch is left behind: GetW sets none if the predecessor does not exist.
	_, _, gone, err := l.conn.GetW(fmt.Sprintf("%s/lock-%010d", l.path, number-1))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	} else if err == nil {
		<-gone
	}
	return err
}

func (l *plain) release(context.Context) error { return l.conn.Delete(l.znode, -1) }

// handingOver is plain with the release of handoff. Ours can be as fast, and no faster.
type handingOver struct{ *plain }

func (l handingOver) release(context.Context) error { return handsOver(l.conn, l.znode) }
