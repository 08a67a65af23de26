package partition_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// count adds to a counter and reads it.
func (c *worker) count(name string) {
	path := "/counters/" + name
	counter := must(c.session.Counter(path, recipes.CounterConfig{}))
	for range opsInRound {
		if c.random.IntN(4) == 0 {
			c.do(message{Kind: read, Path: path}, func(m *message) (err error) {
				m.Out, err = counter.Get(c.ctx)
				return err
			})
			continue
		}
		delta := 1 + c.random.Int64N(3)
		c.do(message{Kind: add, Path: path, In: delta}, func(m *message) (err error) {
			m.Out, err = counter.Add(c.ctx, delta)
			return err
		})
	}
}

// unique returns a value that no other operation writes.
func (c *worker) unique() int64 {
	h := fnv.New64a()
	fmt.Fprint(h, c.session.ID(), c.ops.Add(1))
	return int64(h.Sum64() >> 1)
}

// configure reads a key, sets it and deletes it, usually on condition of the revision that it has read.
// One operation in eight is a deletion.
func (c *worker) configure(key string) {
	const path = "/configuration"
	configuration := must(c.session.Configuration(path))
	seen := recipes.NoRevision
	for range opsInRound {
		if c.random.IntN(2) == 0 {
			c.do(message{Kind: get, Path: key}, func(m *message) error {
				e, err := configuration.Get(c.ctx, key)
				if errors.Is(err, recipes.ErrNoNode) {
					return nil // the zero value and NoRevision
				}
				if err != nil {
					return err
				}
				seen = e.Revision
				m.Out, m.Rev = must(strconv.ParseInt(string(e.Value), 10, 64)), int64(e.Revision)
				return nil
			})
			continue
		}
		value, expected := c.unique(), seen
		if c.random.IntN(4) == 0 {
			expected = recipes.AnyRevision
		}
		if c.random.IntN(4) == 0 && expected != recipes.NoRevision {
			_ = c.do(message{Kind: del, Path: key, Expect: int64(expected)}, func(*message) error {
				err := configuration.Delete(c.ctx, key, expected)
				if err == nil {
					seen = recipes.NoRevision
				}
				return err
			})
			continue
		}
		c.do(message{Kind: set, Path: key, In: value, Expect: int64(expected)}, func(m *message) error {
			revision, err := configuration.Set(c.ctx, key, strconv.AppendInt(nil, value, 10), expected)
			if err == nil {
				seen, m.Rev = revision, int64(revision)
			}
			return err
		})
	}
}

// queue puts elements and takes some.
func (c *worker) queue(name string) {
	path := "/queues/" + name
	queue := must(c.session.Queue(path, recipes.QueueConfig{}))
	for range opsInRound {
		if c.random.IntN(2) == 0 {
			value := c.unique()
			c.do(message{Kind: put, Path: path, In: value}, func(*message) error {
				_, err := queue.Put(c.ctx, strconv.AppendInt(nil, value, 10))
				return err
			})
			continue
		}
		c.do(message{Kind: take, Path: path}, func(m *message) error {
			brief, cancel := context.WithTimeout(c.ctx, round/5) // the queue may stay empty
			defer cancel()
			e, err := queue.Take(brief)
			if err == nil {
				m.Out = must(strconv.ParseInt(string(e.Data), 10, 64))
			}
			return err
		})
	}
}

// The registers. The test creates them.
const (
	registers  = "/registers"
	guarded    = "guarded"
	left       = "left" // left and right are written together
	right      = "right"
	fenced     = "fenced store"
	unfenced   = "unfenced store"
	turnsAHold = 4
)

// parse returns the value of "value token".
func parse(data []byte) (value int64) {
	text, _, _ := strings.Cut(string(data), " ")
	return must(strconv.ParseInt(text, 10, 64))
}

// increment adds one to a register under the guard of g.
func (c *worker) increment(g recipes.Grant, value int64, keys ...string) error {
	ops := make([]recipes.Op, len(keys))
	for i, key := range keys {
		ops[i] = recipes.Set(registers+"/"+key, fmt.Appendf(nil, "%d %d", value+1, g.Token()), recipes.AnyVersion)
	}
	return c.do(message{Kind: write, Path: keys[0], In: value + 1, Token: g.Token()}, func(*message) error {
		return g.Write(c.ctx, ops...)
	})
}

// register reads a register. A holder reads the last write of the previous holder, because
// its server has answered a request since the grant.
func (c *worker) register(key string) (int64, error) {
	e, err := must(c.session.Configuration(registers)).Get(c.ctx, key)
	if err != nil {
		return 0, err
	}
	return parse(e.Value), nil
}

// lock increments three registers under one lock. One is in ZooKeeper, under the guard of
// the hold. One is in a store that compares tokens, and one in a store that does not. It
// reads all three before it writes, so that a pause in between affects all of them. It does
// not check Done: late writes must be refused.
func (c *worker) lock() error {
	const path = "/lock"
	hold, err := must(c.session.Lock(path, recipes.LockConfig{})).Acquire(c.ctx)
	if err != nil {
		return err
	}
	c.reportGrant(path, hold)
	for range turnsAHold {
		value, err := c.register(guarded)
		if err != nil {
			return err
		}
		inFenced := c.ask(message{Kind: readStore, Path: fenced, Token: hold.Token()})
		inUnfenced := c.ask(message{Kind: readStore, Path: unfenced, Token: hold.Token()})
		c.ask(message{Kind: writeStore, Path: unfenced, In: inUnfenced.Value + 1, Token: hold.Token()})
		if !inFenced.Refused {
			c.ask(message{Kind: writeStore, Path: fenced, In: inFenced.Value + 1, Token: hold.Token()})
		}
		if err := c.increment(hold, value, guarded); err != nil && endOf(err) != unknown {
			return err
		}
	}
	c.note(message{Kind: released, Path: path, Token: hold.Token()})
	return hold.Release(c.ctx)
}

// reportGrant reports to the test that a grant is held, and later that Done has closed.
func (c *worker) reportGrant(path string, g recipes.Grant) {
	c.note(message{Kind: granted, Path: path, Token: g.Token()})
	go func() {
		<-g.Done()
		c.note(message{Kind: closed, Path: path, Token: g.Token()})
	}()
}

// campaign leads for a moment, and writes as the leader.
func (c *worker) campaign() error {
	const path = "/election"
	l, err := must(c.session.Election(path, recipes.ElectionConfig{})).Campaign(c.ctx, nil)
	if err != nil {
		return err
	}
	c.reportGrant(path, l)
	if err := l.Acknowledge(c.ctx, nil); err != nil {
		return err
	}
	for range turnsAHold {
		value, err := c.register("term")
		if err != nil {
			return err
		}
		if err := c.increment(l, value, "term"); err != nil && endOf(err) != unknown {
			return err
		}
	}
	c.note(message{Kind: released, Path: path, Token: l.Token()})
	return l.Resign(c.ctx)
}

// beside increments a register under a lock that a contender of another library takes too.
func beside(library int) func(*worker) error {
	l := libraries[library]
	return func(c *worker) error {
		hold, err := must(c.session.Lock(l.path, recipes.LockConfig{Dialect: l.dialect})).Acquire(c.ctx)
		if err != nil {
			return err
		}
		c.reportGrant(l.path, hold)
		value, err := c.register(l.name)
		if err != nil {
			return err
		}
		if err := c.increment(hold, value, l.name); err != nil && endOf(err) != unknown {
			return err
		}
		c.note(message{Kind: released, Path: l.path, Token: hold.Token()})
		return hold.Release(c.ctx)
	}
}

// share writes two registers together, or reads both. A reader that still holds after both
// reads must have found the same value in both.
func (c *worker) share() error {
	const path = "/shared"
	l := must(c.session.SharedLock(path, recipes.SharedLockConfig{}))
	if c.random.IntN(3) == 0 {
		hold, err := l.AcquireWrite(c.ctx)
		if err != nil {
			return err
		}
		value, err := c.register(left)
		if err != nil {
			return err
		}
		if err := c.increment(hold, value, left, right); err != nil && endOf(err) != unknown {
			return err
		}
		return hold.Release(c.ctx)
	}
	hold, err := l.AcquireRead(c.ctx)
	if err != nil {
		return err
	}
	a, err := c.register(left)
	if err != nil {
		return err
	}
	c.until(now() + int64(5*time.Millisecond)) // time for the write of a second holder, if there is one
	b, err := c.register(right)
	if err != nil {
		return err
	}
	if err := c.do(message{Kind: read, Path: "both", In: a, Out: b, Token: hold.Token()}, func(*message) error {
		return hold.Write(c.ctx) // only checks that the lock is still held
	}); err == nil && a != b {
		c.note(message{Kind: torn, In: a, Out: b, Token: hold.Token()})
	}
	return hold.Release(c.ctx)
}

// sites returns the parties of each transaction: one for each client.
func sites() (names []string) {
	for i := range clients {
		names = append(names, fmt.Sprint("site", i))
	}
	return names
}
