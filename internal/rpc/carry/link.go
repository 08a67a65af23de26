package carry

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// link takes messages to the plugin and back. One goroutine sends at a time, and one
// receives.
type link interface {
	send(*pb.CarryRequest) error
	receive(*pb.CarryResponse) error
	// direct is how many bytes may be on their way to the plugin when a call is sent
	// in its caller's goroutine.
	direct() uint64
}

// connect returns a link, which ends with ctx.
func (c *Conn) connect(ctx context.Context) (link, error) {
	if c.dial != nil {
		if conn, err := c.dial(ctx); err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
			return connLink{newFramed(conn, maxResponse)}, nil
		}
	}
	st, err := pb.NewCallServiceClient(c.ClientConnInterface).Carry(ctx, grpc.MaxCallSendMsgSize(maxMessage))
	return streamLink{st}, err
}

// streamLink is a stream of gRPC's.
type streamLink struct {
	grpc.BidiStreamingClient[pb.CarryRequest, pb.CarryResponse]
}

func (l streamLink) send(m *pb.CarryRequest) error     { return l.Send(m) }
func (l streamLink) receive(m *pb.CarryResponse) error { return l.RecvMsg(m) }

// gRPC takes twice as much before it makes a sender wait.
func (streamLink) direct() uint64 { return 32 << 10 }

// connLink is a connection of its own.
type connLink struct{ framed *framed }

func (l connLink) send(m *pb.CarryRequest) error { return l.framed.send(m) }

// receive makes a breach of the plugin's of what is no message.
func (l connLink) receive(m *pb.CarryResponse) error {
	err := l.framed.receive(m)
	if errors.Is(err, recipes.ErrInvalid) || errors.Is(err, recipes.ErrLimit) {
		return breach("%v", err)
	}
	return err
}

// A socket takes 200 KiB before it makes a sender wait, of which a small message takes
// more than a KiB. That is 80 calls of the smallest size.
func (connLink) direct() uint64 { return 8 << 10 }
