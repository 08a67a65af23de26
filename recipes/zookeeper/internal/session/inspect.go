package session

import (
	"context"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// inspection is a path that is read while something is held there.
type inspection struct {
	path string
	seen func(Stat)
}

// Inspect reads the record of path with each confirming request, a tenth of the timeout
// apart, and calls seen with it, until stop is called. seen is called on one goroutine of
// the session, must not block, and may run once more while stop does. It is for what may
// change around a hold without an event; it costs one read a tenth of the timeout.
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

// confirmation is a sync, and the inspections that were sent with it.
type confirmation struct {
	batch       *conn.Batch // nil where it could not be sent
	at          time.Time
	inspections []*inspection
}

// sendConfirmation sends a sync, and behind it the reads of the paths inspected.
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

// answered is closed when all of it is answered; nil where nothing was sent.
func (c confirmation) answered() <-chan struct{} {
	if c.batch == nil || len(c.inspections) == 0 {
		return nil
	}
	return c.batch.Answered()
}

// report calls what waits for the inspections. A path that is not there has no
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
