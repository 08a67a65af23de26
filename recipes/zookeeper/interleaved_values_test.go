package zookeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func interleavedValues() []interleaving {
	names := func(s recipes.Session, t *testing.T) recipes.Names { return must[recipes.Names](t)(s.Names("/n")) }
	return []interleaving{
		{"a name is unregistered, and is gone", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			if err := names(s.one, s.T).RegisterPersistent(s.ctx, "x", nil); err != nil {
				s.Fatal(err)
			}
			n := names(s.one, s.T)
			return func(ctx context.Context) error { return n.Unregister(ctx, "x", 0) }, func() error { return s.remove("/n/x") }
		}, recipes.ErrNoNode},
		{"a name is unregistered, and was written", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			if err := names(s.one, s.T).RegisterPersistent(s.ctx, "x", nil); err != nil {
				s.Fatal(err)
			}
			n := names(s.one, s.T)
			return func(ctx context.Context) error {
				if err := n.Unregister(ctx, "x", 0); err != nil {
					return err
				}
				_, err := n.Lookup(ctx, "x")
				return err
			}, func() error { return s.write("/n/x", "y") }
		}, recipes.ErrNoNode},
		{"a name is registered, and is gone before it is looked at", reading(zkserver.OpExists, "/n/x"), func(s *interleaved) (func(context.Context) error, func() error) {
			n := names(s.one, s.T)
			return func(ctx context.Context) error { _, err := n.Register(ctx, "x", nil); return err }, func() error { return s.remove("/n/x") }
		}, recipes.ErrRemoved},
		{"a name is registered, and is another's when it is looked at", reading(zkserver.OpExists, "/n/x"), func(s *interleaved) (func(context.Context) error, func() error) {
			n := names(s.one, s.T)
			return func(ctx context.Context) error { _, err := n.Register(ctx, "x", nil); return err }, func() error {
				if err := s.remove("/n/x"); err != nil {
					return err
				}
				_, err := names(s.other, s.T).Register(s.ctx, "x", nil)
				return err
			}
		}, recipes.ErrRemoved},
		{"a dead letter is deleted", reading(zkserver.OpGetData, "/q/dead/"), func(s *interleaved) (func(context.Context) error, func() error) {
			q, id := buried(s)
			return func(ctx context.Context) error {
				dead, err := q.DeadLetters(ctx)
				if len(dead) != 0 {
					s.Errorf("dead letters %v", dead)
				}
				return err
			}, func() error { return s.remove("/q/dead/" + id) }
		}, nil},
		{"a put into a bounded queue, and another is faster", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			cfg := recipes.QueueConfig{Capacity: 2}
			mine, theirs := queueOf(s.T, s.one, "/q", cfg), queueOf(s.T, s.other, "/q", cfg)
			must[recipes.ElementID](s.T)(mine.Put(s.ctx, nil))
			return func(ctx context.Context) error {
					short, cancel := context.WithCancel(ctx)
					defer cancel()
					put := make(chan error, 1)
					go func() { _, err := mine.Put(short, nil); put <- err }()
					for s.srv.Watches() == 0 && ctx.Err() == nil { // it waits for room
						time.Sleep(time.Millisecond)
					}
					if n := must[int](s.T)(theirs.Len(ctx)); n != 2 {
						s.Errorf("%d elements in a queue for 2", n)
					}
					must[recipes.Element](s.T)(theirs.Take(ctx))
					return <-put
				}, func() error {
					_, err := theirs.Put(s.ctx, nil)
					return err
				}
		}, nil},
		{"an acknowledgement of an element that was written", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			q := queueOf(s.T, s.one, "/q", recipes.QueueConfig{})
			id := must[recipes.ElementID](s.T)(q.Put(s.ctx, nil))
			d := must[recipes.Delivery](s.T)(q.Receive(s.ctx))
			return func(ctx context.Context) error {
				err := d.Ack(ctx)
				must[recipes.Delivery](s.T)(queueOf(s.T, s.other, "/q", recipes.QueueConfig{}).Receive(ctx)) // its claim is gone
				return err
			}, func() error { return s.write("/q/"+string(id), "x") }
		}, recipes.ErrRemoved},
		{"an acknowledgement of an element that is gone", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			q := queueOf(s.T, s.one, "/q", recipes.QueueConfig{})
			id := must[recipes.ElementID](s.T)(q.Put(s.ctx, nil))
			d := must[recipes.Delivery](s.T)(q.Receive(s.ctx))
			return d.Ack, func() error { return s.remove("/q/" + string(id)) }
		}, recipes.ErrRemoved},
		{"a return of a claim that is gone", is(zkserver.OpDelete), func(s *interleaved) (func(context.Context) error, func() error) {
			q := queueOf(s.T, s.one, "/q", recipes.QueueConfig{})
			must[recipes.ElementID](s.T)(q.Put(s.ctx, nil))
			d := must[recipes.Delivery](s.T)(q.Receive(s.ctx))
			return d.Return, func() error { return s.remove(d.Znode()) }
		}, recipes.ErrRemoved},
		{"an element to be buried is taken, and the next one received", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			theirs := queueOf(s.T, s.other, "/q", recipes.QueueConfig{})
			ids := must[[]recipes.ElementID](s.T)(theirs.PutMany(s.ctx, []byte("first"), []byte("second")))
			if err := must[recipes.Delivery](s.T)(theirs.Receive(s.ctx)).Return(s.ctx); err != nil {
				s.Fatal(err)
			}
			mine := queueOf(s.T, s.one, "/q", recipes.QueueConfig{MaxDeliveries: 1})
			must[recipes.ElementID](s.T)(mine.Put(s.ctx, nil)) // has a receipt
			return func(ctx context.Context) error {
				d, err := mine.Receive(ctx)
				if err == nil && string(d.Element().Data) != "second" {
					s.Errorf("received %q", d.Element().Data)
				}
				return err
			}, func() error { return s.remove("/q/" + string(ids[0])) }
		}, nil},
		{"a key is set, and another sets it", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			mine, theirs := must[recipes.Configuration](s.T)(s.one.Configuration("/c")), must[recipes.Configuration](s.T)(s.other.Configuration("/c"))
			revision := must[recipes.Revision](s.T)(mine.Set(s.ctx, "key", nil, recipes.NoRevision))
			return func(ctx context.Context) error { _, err := mine.Set(ctx, "key", []byte("mine"), revision); return err },
				func() error { _, err := theirs.Set(s.ctx, "key", []byte("theirs"), revision); return err }
		}, recipes.ErrBadVersion},
		{"a key is set whatever it was, and another sets it", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			mine, theirs := must[recipes.Configuration](s.T)(s.one.Configuration("/c")), must[recipes.Configuration](s.T)(s.other.Configuration("/c"))
			must[recipes.Revision](s.T)(mine.Set(s.ctx, "key", nil, recipes.NoRevision))
			return func(ctx context.Context) error {
					_, err := mine.Set(ctx, "key", []byte("mine"), recipes.AnyRevision)
					if e := must[recipes.Entry](s.T)(mine.Get(ctx, "key")); string(e.Value) != "mine" {
						s.Errorf("its value is %q", e.Value)
					}
					return err
				},
				func() error { _, err := theirs.Set(s.ctx, "key", []byte("theirs"), recipes.AnyRevision); return err }
		}, nil},
		{"a key is made, and another makes it", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			mine, theirs := must[recipes.Configuration](s.T)(s.one.Configuration("/c")), must[recipes.Configuration](s.T)(s.other.Configuration("/c"))
			must[recipes.Revision](s.T)(mine.Set(s.ctx, "other", nil, recipes.NoRevision))
			return func(ctx context.Context) error { _, err := mine.Set(ctx, "key", nil, recipes.NoRevision); return err },
				func() error { _, err := theirs.Set(s.ctx, "key", nil, recipes.NoRevision); return err }
		}, recipes.ErrNodeExists},
		{"a key is deleted, and another deletes it", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			mine, theirs := must[recipes.Configuration](s.T)(s.one.Configuration("/c")), must[recipes.Configuration](s.T)(s.other.Configuration("/c"))
			must[recipes.Revision](s.T)(mine.Set(s.ctx, "key", nil, recipes.NoRevision))
			return func(ctx context.Context) error { return mine.Delete(ctx, "key", recipes.AnyRevision) },
				func() error { return theirs.Delete(s.ctx, "key", recipes.AnyRevision) }
		}, recipes.ErrNoNode},
		{"a count, and another counts", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			mine, theirs := counterAt(s.T, s.one, "/count"), counterAt(s.T, s.other, "/count")
			must[int64](s.T)(mine.Add(s.ctx, 1))
			return func(ctx context.Context) error {
				n, err := mine.Add(ctx, 1)
				if n != 3 {
					s.Errorf("it is %d", n)
				}
				return err
			}, func() error { _, err := theirs.Add(s.ctx, 1); return err }
		}, nil},
		{"a count down, and another opens the latch", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			mine, theirs := latchAt(s.T, s.one, "/latch", 2), latchAt(s.T, s.other, "/latch", 2)
			must[int64](s.T)(mine.CountDown(s.ctx))
			return func(ctx context.Context) error {
				n, err := mine.CountDown(ctx)
				if n != 0 {
					s.Errorf("it is %d", n)
				}
				if err == nil {
					err = mine.Wait(ctx)
				}
				return err
			}, func() error { _, err := theirs.CountDown(s.ctx); return err }
		}, nil},
		{"a count down, and another deletes the mark of the open latch", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			mine, theirs := latchAt(s.T, s.one, "/latch", 2), barrierAt(s.T, s.other, "/latch/open")
			must[int64](s.T)(mine.CountDown(s.ctx))
			return func(ctx context.Context) error { // another has opened it, though it counts 1
				_, err := mine.CountDown(ctx)
				if err == nil {
					err = mine.Wait(ctx)
				}
				return err
			}, func() error { return theirs.Set(s.ctx, nil) }
		}, nil},
	}
}

// buried is a queue with a dead letter.
func buried(s *interleaved) (recipes.Queue, string) {
	q := queueOf(s.T, s.one, "/q", recipes.QueueConfig{MaxDeliveries: 1})
	id := must[recipes.ElementID](s.T)(q.Put(s.ctx, nil))
	if err := must[recipes.Delivery](s.T)(q.Receive(s.ctx)).Return(s.ctx); err != nil {
		s.Fatal(err)
	}
	return q, string(id)
}
