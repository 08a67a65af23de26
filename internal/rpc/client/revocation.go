package client

import (
	"context"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// request tells whether the holder was asked to give its grant back.
type request struct {
	g       *grant
	once    sync.Once
	revoked chan struct{}
}

func newRequest(g *grant) *request { return &request{g: g, revoked: make(chan struct{})} }

// Revoked has the plugin told, from the first call on, to answer when the
// request comes. The wait ends with the grant.
func (r *request) Revoked() <-chan struct{} {
	r.once.Do(func() { r.g.s.spawn(r.await) })
	return r.revoked
}

func (r *request) await() {
	s := r.g.s
	wait, cancel := context.WithCancel(s.over)
	defer cancel()
	go func() { // ends with this call at the latest
		select {
		case <-r.g.lost:
			cancel()
		case <-wait.Done():
		}
	}()
	for {
		t, err := s.once(wait, 0, func(ctx context.Context) error {
			_, err := s.Client.readWriteLocks.AwaitRevocation(ctx, &pb.AwaitRevocationRequest{Session: s.handle, RequestId: r.g.id})
			return err
		})
		if err == nil {
			close(r.revoked)
			return
		}
		e, said := wire.Error(err)
		switch moved := s.outlived(wait, t, err); {
		case moved:
		case said:
			r.g.judge(e)
			return
		case !rest(wait): // gRPC failed: ask again
			return
		}
	}
}
