package client

import (
	"context"
	"sync"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// revocation notifies the holder of a request to release its grant.
type revocation struct {
	g       *remoteGrant
	once    sync.Once
	revoked chan struct{}
}

func newRevocation(g *remoteGrant) *revocation {
	return &revocation{g: g, revoked: make(chan struct{})}
}

// Revoked starts, on the first call, a call to the plugin that returns when a revocation is
// requested. The wait ends with the grant.
func (r *revocation) Revoked() <-chan struct{} {
	r.once.Do(func() { r.g.s.spawn(r.await) })
	return r.revoked
}

func (r *revocation) await() {
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
	err := s.persist(wait, way{}, func(ctx context.Context) error {
		_, err := s.readWriteLocks.AwaitRevocation(ctx, &pb.AwaitRevocationRequest{Session: s.handle, RequestId: r.g.id})
		return err
	})
	if err == nil {
		close(r.revoked)
	}
	r.g.judge(err)
}
