package line_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// On a real server, the numbers of a parent are exhausted while contenders of several sessions
// acquire and release. No two hold at the same time, none overtakes another, and no znode is left.
// (line_test.go simulates this on the in-process server.)
func TestTheEndOfTheNumbersOnARealServer(t *testing.T) {
	t.Parallel() // waits for servers
	path := func(s recipes.Strategy, what string) string { return "/" + what + "-" + string(s) }
	var counted []string
	for _, s := range recipes.Strategies() {
		counted = append(counted, path(s, "order"), path(s, "many"))
	}
	addr := startCounted(t, math.MaxInt32-3, append(counted, "/queue")...)

	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			ctx := zktest.Bounded(t)
			s := zktest.OpenAt(t, addr)
			l := must.Get(s.Lock(path(strategy, "order"), recipes.LockConfig{Strategy: strategy}))(t)
			hold := must.Get(l.Acquire(ctx))(t)
			order := queueUp(ctx, t, s, path(strategy, "order"), strategy, 8)
			line := must.Get(l.Contenders(ctx))(t)
			if first, last := line[0], line[len(line)-1]; first.Sequence != math.MaxInt32-3 || last.Sequence != math.MaxInt32 {
				t.Fatalf("the numbers go from %d to %d", first.Sequence, last.Sequence)
			}
			must.Do(t, hold.Release(ctx))
			for want := range 8 {
				if got := <-order; got != want {
					t.Fatalf("contender %d is granted in place %d", got, want)
				}
			}

			var all sync.WaitGroup
			var holders, grants atomic.Int32
			var last recipes.Token // of the holder
			for range 6 {
				s := zktest.OpenAt(t, addr)
				l := must.Get(s.Lock(path(strategy, "many"), recipes.LockConfig{Strategy: strategy}))(t)
				all.Go(func() {
					for range 20 {
						hold, err := l.Acquire(ctx)
						if err != nil {
							t.Error(err)
							return
						}
						if n := holders.Add(1); n != 1 {
							t.Errorf("%d holders", n)
						}
						if hold.Token() <= last {
							t.Errorf("token %d after %d", hold.Token(), last)
						}
						last = hold.Token()
						grants.Add(1)
						holders.Add(-1)
						if err := hold.Release(ctx); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			if n := grants.Load(); n != 6*20 {
				t.Errorf("%d grants", n)
			}
		})
	}

	t.Run("queue", func(t *testing.T) {
		ctx := zktest.Bounded(t)
		q := must.Get(zktest.OpenAt(t, addr).Queue("/queue", recipes.QueueConfig{}))(t)
		const left = 3 // the parent of the receipts takes a number too
		for i := range left {
			must.Get(q.Put(ctx, []byte{byte(i)}))(t)
		}
		if _, err := q.Put(ctx, nil); !errors.Is(err, recipes.ErrNodeExists) || !strings.Contains(err.Error(), "used all sequence numbers") {
			t.Errorf("one element more than there are numbers: %v", err)
		}
		for i := range left {
			if e := must.Get(q.Take(ctx))(t); e.Data[0] != byte(i) {
				t.Errorf("element %d was received as number %d", e.Data[0], i)
			}
		}
	})
}

// startCounted starts a server that has znodes at these paths, each of which has counted its
// children up to number. They are not containers: an empty container would be deleted before
// a contender joins.
func startCounted(t *testing.T, number int32, paths ...string) string {
	t.Helper()
	cfg := ensembletest.Quick(1)
	cfg.Dir = t.TempDir()
	e := ensembletest.Start(t, cfg)
	server := e.Server(0)
	must.Do(t, server.Kill())
	found, err := filepath.Glob(filepath.Join(cfg.Dir, "*", "*", "data", "version-2"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the server's data is in %q: %v", found, err)
	}
	must.Do(t, os.RemoveAll(found[0]))
	must.Do(t, os.Mkdir(found[0], 0o700))
	const zxid = 0x100
	name := filepath.Join(found[0], fmt.Sprintf("snapshot.%x", zxid))
	must.Do(t, os.WriteFile(name, snapshot(zxid, number, paths), 0o600))
	must.Do(t, server.Restart(t.Context()))
	return server.Addr()
}

// snapshot returns a snapshot file in the format of ZooKeeper 3.4, without digests, which 3.8 also
// reads.
func snapshot(zxid int64, cversion int32, parents []string) []byte {
	var b []byte
	i32 := func(v int32) { b = binary.BigEndian.AppendUint32(b, uint32(v)) }
	i64 := func(v int64) { b = binary.BigEndian.AppendUint64(b, uint64(v)) }
	str := func(s string) { i32(int32(len(s))); b = append(b, s...) }
	node := func(path string, cversion int32) {
		str(path)
		i32(0)        // no data
		i64(-1)       // open to every client
		i64(zxid - 1) // created
		i64(zxid - 1) // modified
		i64(0)        // created, in milliseconds
		i64(0)        // modified
		i32(0)        // version
		i32(cversion)
		i32(0)    // version of the ACL
		i64(0)    // not ephemeral
		i64(zxid) // zxid of the last change of the children
	}
	b = append(b, "ZKSN"...)
	i32(2)  // version
	i64(-1) // database
	i32(0)  // no sessions
	i32(0)  // no ACLs
	for _, path := range []string{"", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"} {
		node(path, 0)
	}
	for _, path := range parents {
		node(path, cversion)
	}
	str("/") // no more
	i64(int64(adler32.Checksum(b)))
	str("/")
	return b
}
