package session

import (
	"context"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// inspection is a path whose record is read while the session holds something there.
type inspection struct {
	path string
	seen func(Stat)
}

// Inspect reads the record of path with each confirmation and calls seen with it, until stop is
// called. That costs one read every tenth of the timeout. It shows changes that no watch of the
// hold reports. One goroutine of the session makes all calls of seen. seen must not block, and
// may still be called once after stop has returned.
func (s *Session) Inspect(path string, seen func(Stat)) (stop func()) {
	i := &inspection{path, seen}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inspections = append(s.inspections, i)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if at := slices.Index(s.inspections, i); at >= 0 {
			s.inspections = slices.Delete(s.inspections, at, at+1)
		}
	}
}

func (s *Session) inspecting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inspections) > 0
}

// confirmation is a sync and the inspections sent with it.
type confirmation struct {
	batch       *conn.Batch // nil if it could not be sent
	at          time.Time
	inspections []*inspection
}

// sendConfirmation sends a sync, followed by the reads for all inspections.
func (s *Session) sendConfirmation() confirmation {
	s.mu.Lock()
	c := confirmation{at: time.Now(), inspections: slices.Clone(s.inspections)}
	s.mu.Unlock()
	requests := []conn.Request{conn.Sync(s.full("/"))}
	for _, i := range c.inspections {
		requests = append(requests, conn.Exists(s.full(i.path), false))
	}
	c.batch, _ = s.wire.Sender().Send(requests...)
	return c
}

// answered is closed when all replies have arrived. It is nil if nothing was sent or nothing is
// inspected.
func (c confirmation) answered() <-chan struct{} {
	if c.batch == nil || len(c.inspections) == 0 {
		return nil
	}
	return c.batch.Answered()
}

// report passes the records to the inspections. It skips a missing path, which has no
// contenders.
func (c confirmation) report() {
	replies, err := c.batch.Await(context.Background())
	if err != nil {
		return
	}
	for n, i := range c.inspections {
		if stat, err := replies[n+1].Stat(); err == nil {
			i.seen(stat)
		}
	}
}
