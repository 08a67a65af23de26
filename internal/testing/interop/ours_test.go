package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// contend does the same as testdata/interop/peer.py with our recipes, in a process of its
// own. The name of the recipe begins with the dialect: "kazoo/lock".
func contend(args []string) {
	servers, path := args[0], args[3]
	timeout, _ := strconv.Atoi(args[1])
	dialect, recipe := recipes.Dialect(filepath.Dir(args[2])), filepath.Base(args[2])
	ctx := context.Background()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	w := witness(args[4])
	for again := false; ; again = true {
		s, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{servers}, SessionTimeout: time.Duration(timeout) * time.Millisecond})
		if err != nil {
			broken(err)
		}
		if again {
			say("lost")
		} else {
			say("ready")
		}
		for err == nil {
			err = w.turn(ctx, s, dialect, recipe, path)
		}
		if !errors.Is(err, recipes.ErrSessionLost) { // a busy machine may lose a session
			broken(err)
		}
	}
}

// say writes a line for the test, if it has started this process.
func say(format string, args ...any) {
	if os.Getenv(peerEnv) != "" {
		fmt.Printf(format+"\n", args...)
	}
}

// broken reports an error of a peer to the test, and does not return.
func broken(err error) {
	say("violation ours failed: %v", err)
	watchdog.Hang() // until the test ends it
}

// witness is the directory in which peers create files while they hold. So a holder detects
// another one that it should exclude.
type witness string

func (w witness) turn(ctx context.Context, s recipes.Client, dialect recipes.Dialect, recipe, path string) error {
	data := fmt.Appendf(nil, "ours %d", os.Getpid())
	switch recipe {
	case "lock", "selector", "election", "semaphore":
		way := grants.Named(strings.Replace(recipe, "selector", "lock", 1)) // a LeaderSelector of Curator is a lock
		e, err := way.Open(s, path, grants.Options{Dialect: dialect, Data: data, Permits: 2})
		if err != nil {
			return err
		}
		g, err := e.Get(ctx)
		if err != nil {
			return err
		}
		if recipe == "semaphore" {
			err = w.permit(s, g)
		} else {
			err = w.exclusive(g)
		}
		if err != nil {
			return err
		}
		return way.GiveBack(ctx, g)
	case "rw":
		l, err := s.SharedLock(path, recipes.SharedLockConfig{Dialect: dialect, Data: data})
		if err != nil {
			return err
		}
		acquire, do := l.AcquireWrite, w.exclusive
		if rand.N(2) == 0 {
			acquire, do = l.AcquireRead, w.shared
		}
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second) // the subject of the test: a contender that gives up
		defer cancel()
		h, err := acquire(bounded)
		if bounded.Err() != nil && err != nil {
			say("timeout")
			return nil
		}
		if err == nil && h.Mode() == recipes.Writing && rand.N(3) == 0 {
			do = func(g recipes.Grant) error {
				if err := errors.Join(w.exclusive(g), h.Downgrade(ctx)); err != nil {
					return err
				}
				return w.shared(g)
			}
		}
		if err == nil {
			err = do(h)
		}
		if err != nil {
			return err
		}
		return h.Release(ctx)
	}
	return w.another(ctx, s, dialect, recipe, path)
}

// another does a turn of a recipe without a wait queue.
func (w witness) another(ctx context.Context, s recipes.Client, dialect recipes.Dialect, recipe, path string) error {
	me := strconv.Itoa(os.Getpid())
	switch recipe {
	case "counter":
		c, err := s.Counter(path, recipes.CounterConfig{Dialect: dialect})
		if err != nil {
			return err
		}
		n, err := c.Add(ctx, 1)
		if err == nil {
			say("turn %d", n)
			time.Sleep(5 * time.Millisecond) // lets the other contenders have turns
		}
		return err
	case "group":
		return w.member(ctx, s, dialect, "ours "+me, path)
	case "rounds":
		return w.takePart(ctx, s, dialect, path)
	case "queue":
		q, err := s.Queue(path, recipes.QueueConfig{Dialect: dialect})
		if err != nil {
			return err
		}
		puts++
		id := fmt.Sprintf("%s-%d", me, puts)
		if _, err := q.Put(ctx, []byte(id)); err != nil {
			return err
		}
		say("put %s", id)
		e, err := q.Take(ctx)
		if err == nil {
			say("took %s", e.Data)
			time.Sleep(5 * time.Millisecond) // lets the other contenders have turns
		}
		return err
	}
	return fmt.Errorf("no recipe %s", recipe)
}

var puts int

func (w witness) member(ctx context.Context, s recipes.Recipes, dialect recipes.Dialect, me, path string) error {
	g, err := s.Group(path, recipes.GroupConfig{Dialect: dialect})
	if err != nil {
		return err
	}
	m, err := g.Join(ctx, []byte(me))
	if err != nil {
		return err
	}
	members, err := g.Members(ctx)
	if err != nil {
		return err
	}
	self, theirs := false, false
	for _, m := range members {
		self = self || string(m.Data) == me
		theirs = theirs || strings.HasPrefix(string(m.Data), "kazoo ")
	}
	if !self {
		say("violation ours does not see itself")
	}
	if theirs {
		say("held")
	}
	return m.Leave(ctx)
}

func (w witness) permit(s recipes.Session, g recipes.Grant) error {
	me := w.file("slot-" + strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(me, nil, 0o600); err != nil {
		return err
	}
	for range 2 {
		if slots, _ := filepath.Glob(w.file("slot-*")); len(slots) > 2 {
			say("violation ours has a permit beside %q", slots)
		}
		time.Sleep(time.Millisecond)
	}
	say("held %d %d", g.Token(), s.ID())
	return os.Remove(me)
}

func (w witness) file(name string) string { return filepath.Join(string(w), name) }

func (w witness) exclusive(g recipes.Grant) error {
	f, err := os.OpenFile(w.file("writer"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		say("violation ours holds beside a holder")
		return nil
	}
	if err != nil {
		return err
	}
	_, _ = f.WriteString(strconv.Itoa(os.Getpid()))
	_ = f.Close()
	if readers, _ := filepath.Glob(w.file("reader-*")); len(readers) > 0 {
		say("violation ours writes beside %q", readers)
	}
	text, err := os.ReadFile(w.file("counter"))
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(bytes.TrimSpace(text)))
	time.Sleep(2 * time.Millisecond) // so that an increment without exclusion is lost
	if err := os.WriteFile(w.file("counter"), []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	say("turn %d %d", n+1, g.Token())
	return os.Remove(w.file("writer"))
}

// turnsUntilNow returns the number of the last turn of a writer.
func (w witness) turnsUntilNow() int64 {
	text, _ := os.ReadFile(w.file("counter"))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

func (w witness) shared(g recipes.Grant) error {
	me := w.file("reader-" + strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(me, nil, 0o600); err != nil {
		return err
	}
	for range 2 {
		if _, err := os.Stat(w.file("writer")); err == nil {
			say("violation ours reads beside a writer")
		}
		time.Sleep(time.Millisecond)
	}
	say("read %d %d", w.turnsUntilNow(), g.Token())
	return os.Remove(me)
}
