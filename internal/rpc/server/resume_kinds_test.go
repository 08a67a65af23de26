package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// ask asks for a grant, or takes up the one that the session had before.
type ask func(ctx context.Context, conn grpc.ClientConnInterface, session, id string, had *pb.Grant) (interface{ GetGrant() *pb.Grant }, error)

func readWrite(kind recipes.Kind, mode recipes.Mode) ask {
	return func(ctx context.Context, conn grpc.ClientConnInterface, session, id string, had *pb.Grant) (interface{ GetGrant() *pb.Grant }, error) {
		return pb.NewReadWriteLockServiceClient(conn).AcquireReadWrite(ctx, &pb.AcquireReadWriteRequest{
			Session: session, RequestId: id, Path: "/" + id, Kind: string(kind), Mode: wire.ToMode(mode), Resumed: had,
		})
	}
}

// kinds is everything that can be taken up, each by its request id.
var kinds = map[string]ask{
	"lock": func(ctx context.Context, conn grpc.ClientConnInterface, session, id string, had *pb.Grant) (interface{ GetGrant() *pb.Grant }, error) {
		return pb.NewLockServiceClient(conn).Acquire(ctx, &pb.AcquireRequest{Session: session, RequestId: id, Path: "/" + id, Resumed: had})
	},
	"reader":          readWrite(recipes.KindSharedLock, recipes.Reading),
	"writer":          readWrite(recipes.KindSharedLock, recipes.Writing),
	"priority-reader": readWrite(recipes.KindPriorityLock, recipes.Reading),
	"priority-writer": readWrite(recipes.KindPriorityLock, recipes.Writing),
	"semaphore": func(ctx context.Context, conn grpc.ClientConnInterface, session, id string, had *pb.Grant) (interface{ GetGrant() *pb.Grant }, error) {
		return pb.NewSemaphoreServiceClient(conn).AcquirePermit(ctx, &pb.AcquirePermitRequest{Session: session, RequestId: id, Path: "/" + id, Permits: 2, Resumed: had})
	},
	"slot": func(ctx context.Context, conn grpc.ClientConnInterface, session, id string, had *pb.Grant) (interface{ GetGrant() *pb.Grant }, error) {
		return pb.NewSemaphoreServiceClient(conn).AcquireSlot(ctx, &pb.AcquireSlotRequest{Session: session, RequestId: id, Path: "/" + id, Permits: 2, Resumed: had})
	},
	"election": func(ctx context.Context, conn grpc.ClientConnInterface, session, id string, had *pb.Grant) (interface{ GetGrant() *pb.Grant }, error) {
		return pb.NewElectionServiceClient(conn).Campaign(ctx, &pb.CampaignRequest{Session: session, RequestId: id, Path: "/" + id, Resumed: had})
	},
	"group": func(ctx context.Context, conn grpc.ClientConnInterface, session, id string, had *pb.Grant) (interface{ GetGrant() *pb.Grant }, error) {
		return pb.NewGroupServiceClient(conn).Join(ctx, &pb.JoinRequest{Session: session, RequestId: id, Path: "/" + id, Resumed: had})
	},
	"name": func(ctx context.Context, conn grpc.ClientConnInterface, session, id string, had *pb.Grant) (interface{ GetGrant() *pb.Grant }, error) {
		return pb.NewNamesServiceClient(conn).RegisterName(ctx, &pb.RegisterNameRequest{Session: session, RequestId: id, Path: "/" + id, Name: "it", Resumed: had})
	},
	"element": func(ctx context.Context, conn grpc.ClientConnInterface, session, id string, had *pb.Grant) (interface{ GetGrant() *pb.Grant }, error) {
		queues, queue := pb.NewQueueServiceClient(conn), wire.ToQueue("/"+id, false, recipes.QueueConfig{})
		if had == nil {
			if _, err := queues.PutElements(ctx, &pb.PutElementsRequest{Session: session, Queue: queue, Data: [][]byte{nil}}); err != nil {
				return nil, err
			}
		}
		return queues.ReceiveElement(ctx, &pb.ReceiveElementRequest{Session: session, RequestId: id, Queue: queue, Resumed: had})
	},
}

// A second plugin takes up whatever the session holds, and can write under it and give it
// back.
func TestEverythingThatIsHeldIsTakenUp(t *testing.T) {
	zk, way := zooKeeper(t), new(wireToZooKeeper)
	first := hostOf(t, zk, server.Config{Open: zookeeper.OpenWith(way.dial), Resume: zookeeper.Resume})
	opened := first.open(nil)
	session := opened.GetSession()
	held := make(map[string]*pb.Grant)
	for id, ask := range kinds {
		a, err := ask(first.ctx, first.conn, session, id, nil)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		held[id] = a.GetGrant()
	}
	way.kill()
	second := hostOf(t, zk, server.Config{Open: zookeeper.Open, Resume: zookeeper.Resume})
	second.open(resumeOf(opened))
	for id, ask := range kinds {
		a, err := ask(second.ctx, second.conn, session, id, held[id])
		if err != nil {
			t.Fatalf("take up %s: %v", id, err)
		}
		if g := a.GetGrant(); g.GetToken() != held[id].GetToken() || g.GetZnode() != held[id].GetZnode() {
			t.Errorf("%s: took up %v; held %v", id, g, held[id])
		}
	}
	if _, err := second.sessions.DropRest(second.ctx, &pb.DropRestRequest{Session: session}); err != nil {
		t.Fatal(err)
	}
	for id := range kinds {
		create := wire.ToOps([]recipes.Op{recipes.Create("/written-"+id, nil)})
		if _, err := second.grants.Write(second.ctx, &pb.WriteRequest{Session: session, RequestId: id, Ops: create}); err != nil {
			t.Errorf("write under %s: %v", id, err)
		}
		if _, err := second.grants.Release(second.ctx, &pb.ReleaseRequest{Session: session, RequestId: id}); err != nil {
			t.Errorf("give %s back: %v", id, err)
		}
		for _, n := range zk.Tree() {
			if n.Path == held[id].GetZnode() {
				t.Errorf("%s is there after it was given back", n.Path)
			}
		}
	}
	if _, err := second.sessions.Close(second.ctx, &pb.CloseRequest{Session: session}); err != nil {
		t.Error(err)
	}
}

// A plugin that is resuming a session refuses to resume it again.
func TestASessionIsResumedOnce(t *testing.T) {
	zk := zooKeeper(t)
	first := hostOf(t, zk, server.Config{Open: zookeeper.Open, Resume: zookeeper.Resume})
	opened := first.open(nil)
	if _, err := first.sessions.Detach(first.ctx, &pb.DetachRequest{Session: opened.GetSession()}); err != nil {
		t.Fatal(err)
	}
	resuming, goOn := make(chan struct{}), make(chan struct{})
	second := hostOf(t, zk, server.Config{Open: zookeeper.Open, Resume: func(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, known time.Time) (recipes.Client, error) {
		close(resuming)
		<-goOn
		return zookeeper.Resume(ctx, cfg, ticket, known)
	}})
	other := *second
	resumed := make(chan error, 1)
	go func() {
		_, err := second.try(resumeOf(opened))
		resumed <- err
	}()
	<-resuming
	_, err := other.try(resumeOf(opened))
	close(goOn)
	if !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("resumed twice: %v", err)
	}
	if err := <-resumed; err != nil {
		t.Error(err)
	}
}
