package client

import (
	"context"
	"sync"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// revocation tells whether the holder was asked to give its grant back.
type revocation struct {
	g       *grant
	once    sync.Once
	revoked chan struct{}
}

func newRevocation(g *grant) *revocation { return &revocation{g: g, revoked: make(chan struct{})} }

// Revoked has the plugin told, from the first call on, to answer when the
// request comes. The wait ends with the grant.
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
		_, err := s.Client.readWriteLocks.AwaitRevocation(ctx, &pb.AwaitRevocationRequest{Session: s.handle, RequestId: r.g.id})
		return err
	})
	if err == nil {
		close(r.revoked)
	}
	r.g.judge(err)
}
