package recipestest_test

import (
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestOneLineWithGoZookeeper: contenders of all strategies and of go-zookeeper's Lock exclude
// each other at one path, and each gets its turns.
func TestOneLineWithGoZookeeper(t *testing.T) {
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			oneLine(t, server.start(t)(t))
		})
	}
}

const (
	interopContenders = 3 // of each kind
	interopTurns      = 8 // of each contender
)

func oneLine(t *testing.T, servers []string) {
	ctx := patient(t)
	path := "/interop-" + uuid.NewString()
	history := newHistory()
	var turns atomic.Int64
	var contenders errgroup.Group
	client := 0
	contend := func(lock func() (recipes.Token, error), check, unlock func() error) {
		client++
		me := client
		contenders.Go(func() error {
			for range interopTurns {
				var err error
				var token recipes.Token
				history.record(me, granted, func() recipes.Token {
					token, err = lock()
					return token
				})
				if err != nil {
					return fmt.Errorf("contender %d: lock: %w", me, err)
				}
				turns.Add(1)
				// The contender holds the lock for a round trip.
				history.record(me, wrote, func() recipes.Token { err = check(); return token })
				if err != nil {
					return fmt.Errorf("contender %d: check: %w", me, err)
				}
				history.record(me, released, func() recipes.Token { err = unlock(); return token })
				if err != nil {
					return fmt.Errorf("contender %d: unlock: %w", me, err)
				}
			}
			return nil
		})
	}
	for i := range interopContenders {
		for _, strategy := range recipes.Strategies() {
			l, err := open(t, zookeeper.Open, 0, servers...).Lock(path, recipes.LockConfig{Strategy: strategy})
			if err != nil {
				t.Fatal(err)
			}
			var h recipes.Hold
			contend(func() (_ recipes.Token, err error) {
				if h, err = l.Acquire(ctx); err != nil {
					return 0, err
				}
				return h.Token(), nil
			}, func() error { return h.Write(ctx) }, func() error { return h.Release(ctx) })
		}
		conn := connect(t, servers...)
		theirs := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
		marker := fmt.Sprintf("theirs-%d", i)
		contend(
			func() (recipes.Token, error) {
				if err := theirs.LockWithData([]byte(marker)); err != nil {
					return 0, err
				}
				return tokenOf(conn, path, marker)
			},
			func() error { _, err := tokenOf(conn, path, marker); return err },
			theirs.Unlock)
	}
	if err := contenders.Wait(); err != nil {
		t.Fatal(err)
	}
	if want := int64(client * interopTurns); turns.Load() != want {
		t.Errorf("%d turns; want %d", turns.Load(), want)
	}
	history.check(t, exclusive)
}

// tokenOf finds the znode of a go-zookeeper lock by its data, because the lock does not return
// it.
func tokenOf(conn *zk.Conn, path, data string) (recipes.Token, error) {
	names, _, err := conn.Children(path)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		got, stat, err := conn.Get(path + "/" + name)
		if err == nil && string(got) == data {
			return recipes.Token(stat.Czxid), nil
		}
	}
	return 0, fmt.Errorf("no contender with data %q in %s", data, path)
}

// TestOrderWithGoZookeeper: in a wait queue of both libraries, each contender waits for the one
// ahead, whichever library it uses.
func TestOrderWithGoZookeeper(t *testing.T) {
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			addrs := server.start(t)(t)
			path := "/interop-" + uuid.NewString()
			s, conn := open(t, zookeeper.Open, 0, addrs...), connect(t, addrs...)
			l, err := s.Lock(path, recipes.LockConfig{})
			if err != nil {
				t.Fatal(err)
			}

			// Their contender holds, ours waits and lists it.
			theirs := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
			if err := theirs.LockWithData([]byte("theirs")); err != nil {
				t.Fatal(err)
			}
			_, err = l.TryAcquire(t.Context())
			if err == nil {
				t.Fatal("TryAcquire was granted while theirs holds")
			}
			w := wait(t, s, path)
			line, err := l.Contenders(t.Context())
			if err != nil || len(line) != 2 || string(line[0].Data) != "theirs" || line[0].SessionID != conn.SessionID() {
				t.Fatalf("the wait queue is %+v, %v; want theirs and ours", line, err)
			}
			ours := regexp.MustCompile(`^` + path + `/lock-[0-9]{10}$`) // of Handoff
			goZookeepers := regexp.MustCompile(`^` + path + `/_c_[0-9a-f]{32}-lock-[0-9]{10}$`)
			if !goZookeepers.MatchString(line[0].Znode) || !ours.MatchString(line[1].Znode) {
				t.Errorf("named %s and %s", line[0].Znode, line[1].Znode)
			}

			// Our contender holds, theirs waits.
			if !w.waiting() {
				t.Fatal("granted while theirs is held")
			}
			if err := theirs.Unlock(); err != nil {
				t.Fatal(err)
			}
			h := w.granted(t)
			locked := make(chan error, 1)
			go func() { locked <- theirs.Lock() }()
			second := connect(t, addrs...)
			for { // until theirs has joined
				names, _, changed, err := second.ChildrenW(path)
				if err != nil {
					t.Fatal(err)
				}
				if len(names) == 2 {
					break
				}
				<-changed
			}
			select {
			case err := <-locked:
				t.Fatalf("their Lock returned (%v) while ours holds", err)
			default:
			}
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-locked; err != nil {
				t.Fatal(err)
			}
			if err := theirs.Unlock(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
