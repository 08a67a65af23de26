package zookeeper_test

import (
	"context"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The reply to a claim is lost, somebody deletes the receipt before it is read, and the
// look at the claim is throttled. The claim is there all the same, so its consumer has to
// know of it: nobody else could receive the element as long as the session lives.
func TestAClaimIsFoundWithoutReplyAndReceipt(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, other recipes.Session) {
		consumes := openVirtual(t, srv)
		q := queueOf(t, consumes, "/q", recipes.QueueConfig{})
		must[[]recipes.ElementID](t)(q.PutMany(ctx, []byte("first"), []byte("second")))
		if err := must[recipes.Delivery](t)(q.Receive(ctx)).Ack(ctx); err != nil { // makes the receipt
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
				if err := barrierAt(t, other, r.Path).Remove(ctx); err != nil {
					t.Error(err)
				}
			case r.Op == zkserver.OpExists && strings.Contains(r.Path, "/claims/") && throttled == 0:
				throttled++
				return zkserver.Fault{Throttle: true}
			}
			return zkserver.Fault{}
		})
		d := must[recipes.Delivery](t)(q.Receive(ctx))
		srv.SetFault(nil)
		if dropped != 1 || deleted != 1 || throttled != 1 {
			t.Errorf("%d replies dropped, %d receipts deleted, %d looks throttled; want one of each", dropped, deleted, throttled)
		}
		for _, n := range srv.Tree() {
			if n.Path == d.Znode() && recipes.Token(n.Stat.Czxid) != d.Token() {
				t.Errorf("token %d; the claim's is %d", d.Token(), n.Stat.Czxid)
			}
		}
		if err := d.Ack(ctx); err != nil {
			t.Error(err)
		}
	})
}

// What is done is not done again because the server was busy for a moment.
func TestAThrottledEndOfADeliveryIsItsEnd(t *testing.T) {
	for name, end := range map[string]func(recipes.Delivery, context.Context) error{
		"acknowledged": recipes.Delivery.Ack, "returned for the last time": recipes.Delivery.Return,
	} {
		t.Run(name, func(t *testing.T) {
			onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session) {
				q := queueOf(t, s, "/q", recipes.QueueConfig{MaxDeliveries: 1})
				must[recipes.ElementID](t)(q.Put(ctx, []byte("x")))
				d := must[recipes.Delivery](t)(q.Receive(ctx))
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
