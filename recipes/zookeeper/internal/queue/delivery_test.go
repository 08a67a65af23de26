package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The reply to a claim is lost, another client deletes the receipt before it is read, and the
// read of the claim is throttled. The claim still exists, so its consumer must get the
// delivery: no other consumer can receive the element while the session lives.
func TestAClaimIsFoundWithoutReplyAndReceipt(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, other recipes.Client) {
		consumes := zktest.OpenVirtual(t, srv)
		q := zktest.QueueOf(t, consumes, "/q", recipes.QueueConfig{})
		must.Get(q.PutMany(ctx, []byte("first"), []byte("second")))(t)
		if err := must.Get(q.Receive(ctx))(t).Ack(ctx); err != nil { // creates the receipt
			t.Fatal(err)
		}
		var dropped, deleted, throttled int
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			receipt := strings.Contains(r.Path, "-receipt-")
			switch {
			case r.SessionID != consumes.ID():
			case r.Op == zkserver.OpMulti && receipt && dropped == 0:
				dropped++
				return zkserver.Fault{DropReply: true}
			case r.Op == zkserver.OpExists && receipt && deleted == 0:
				deleted++
				must.Report(t, zktest.BarrierAt(t, other, r.Path).Remove(ctx))
			case r.Op == zkserver.OpExists && strings.Contains(r.Path, "/claims/") && throttled == 0:
				throttled++
				return zkserver.Fault{Throttle: true}
			}
			return zkserver.Fault{}
		})
		d := must.Get(q.Receive(ctx))(t)
		srv.SetFault(nil)
		if dropped != 1 || deleted != 1 || throttled != 1 {
			t.Errorf("%d replies dropped, %d receipts deleted, %d reads throttled; want one of each", dropped, deleted, throttled)
		}
		for _, n := range srv.Tree() {
			if n.Path == d.Znode() && recipes.Token(n.Stat.Czxid) != d.Token() {
				t.Errorf("token %d; the claim's is %d", d.Token(), n.Stat.Czxid)
			}
		}
		must.Report(t, d.Ack(ctx))
	})
}

// Ack is retried while the server throttles, so the element is not delivered again.
func TestAThrottledEndOfADeliveryIsItsEnd(t *testing.T) {
	for name, end := range map[string]func(recipes.Delivery, context.Context) error{
		"acknowledged": recipes.Delivery.Ack, "returned for the last time": recipes.Delivery.Return,
	} {
		t.Run(name, func(t *testing.T) {
			zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
				q := zktest.QueueOf(t, s, "/q", recipes.QueueConfig{MaxDeliveries: 1})
				must.Get(q.Put(ctx, []byte("x")))(t)
				d := must.Get(q.Receive(ctx))(t)
				throttled := 0
				srv.SetFault(func(r zkserver.Request) zkserver.Fault {
					if throttled == 3 {
						return zkserver.Fault{}
					}
					throttled++
					return zkserver.Fault{Throttle: true}
				})
				if err := end(d, ctx); err != nil || throttled != 3 {
					t.Errorf("%v after %d throttled requests", err, throttled)
				}
				srv.SetFault(nil)
				if n, err := q.Len(ctx); n != 0 || err != nil {
					t.Errorf("%d elements, %v", n, err)
				}
			})
		})
	}
}

// Ephemeral elements live as long as their session, whichever process serves it. A claim that was
// not resumed is deleted, even in a queue with ephemeral elements.
func TestEphemeralElementsStayInAResumedSession(t *testing.T) {
	zktest.Everywhere(t, func(t *testing.T, addr, path string) {
		for _, dialect := range []recipes.Dialect{recipes.ZooKeeper, recipes.Curator, recipes.Kazoo} {
			path := path + "-" + string(dialect)
			ctx, s, other := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
			cfg := recipes.QueueConfig{Ephemeral: true, Dialect: dialect}
			putting := must.Get(s.Queue(path, cfg))(t)
			must.Get(putting.PutMany(ctx, []byte("1"), []byte("2")))(t)
			if dialect != recipes.Curator { // Curator's queue has no priorities
				must.Get(must.Get(s.PriorityQueue(path+"-priority", cfg))(t).Put(ctx, 7, []byte("3")))(t)
			}
			if dialect == recipes.ZooKeeper {
				must.Get(putting.Receive(ctx))(t)
			}
			must.Get(must.Get(s.Lock(path+"-lock", recipes.LockConfig{}))(t).Acquire(ctx))(t)

			s = zktest.Move(t, addr, s)
			must.Do(t, s.(zktest.Movable).DropRest(ctx))
			for _, want := range []string{"1", "2"} {
				e := must.Get(must.Get(other.Queue(path, cfg))(t).Take(ctx))(t)
				if string(e.Data) != want {
					t.Errorf("%s: %s was taken", dialect, e.Data)
				}
			}
			if dialect != recipes.Curator {
				e := must.Get(must.Get(other.PriorityQueue(path+"-priority", cfg))(t).Take(ctx))(t)
				if string(e.Data) != "3" {
					t.Errorf("%s: %s was taken", dialect, e.Data)
				}
			}
			must.Get(must.Get(other.Lock(path+"-lock", recipes.LockConfig{}))(t).TryAcquire(ctx))(t)
			must.Get(must.Get(s.Queue(path, cfg))(t).Put(ctx, []byte("4")))(t)
			must.Do(t, s.Close(ctx))
			if _, err := must.Get(other.Queue(path, cfg))(t).Peek(ctx); !errors.Is(err, recipes.ErrEmpty) {
				t.Errorf("%s: after the session's end: %v", dialect, err)
			}
		}
	})
}

// Each element that Put accepts can be received.
func TestTheLargestElementIsReceived(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	q := zktest.QueueOf(t, zktest.Open(t, srv), "/q", recipes.QueueConfig{})
	const most = 64<<10 - 3<<10
	if _, err := q.Put(ctx, make([]byte, most+1)); !errors.Is(err, recipes.ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
	must.Get(q.Put(ctx, make([]byte, most)))(t)
	d := must.Get(q.Receive(ctx))(t)
	if n := len(d.Element().Data); n != most {
		t.Errorf("%d bytes were received", n)
	}
	must.Report(t, d.Ack(ctx))
}
