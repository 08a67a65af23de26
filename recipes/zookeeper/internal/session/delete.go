package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Delete deletes protected znodes of this session. Their names are used once, so a repeated
// deletion cannot hit another client's znode.
//
// It does not wait. The channel receives nil when the znode is known to be deleted. It receives
// ErrNoNode if the znode did not exist when the first request of this call reached the server, and
// the reason if the session was lost. The deletion continues until its outcome is known or the session has
// ended, even if no goroutine reads the channel.
//
// Several znodes are deleted one after the other. The channel receives the result of the last
// one.
func (s *Session) Delete(paths ...string) <-chan error {
	return s.inBackground(func(life context.Context) (err error) {
		for _, path := range paths {
			err = s.deleteUntilKnown(life, path)
		}
		return err
	})
}

// inBackground runs f like Background. The channel receives f's result, or why f does not run.
func (s *Session) inBackground(f func(life context.Context) error) <-chan error {
	done := make(chan error, 1)
	if !s.Background(func(life context.Context) { done <- f(life) }) {
		done <- s.Err()
	}
	return done
}

func (s *Session) deleteUntilKnown(life context.Context, path string) error {
	sent := false
	_, err := RetryThrottled(life, s, func() (struct{}, error) {
		return readWith(life, s, "delete", path, func() (struct{}, error) {
			_, err := conn.Ask(s.wire.Current(), conn.Delete(s.full(path), recipes.AnyVersion), conn.Reply.Nothing)
			if sent && errors.Is(err, recipes.ErrNoNode) {
				err = nil // an earlier attempt, whose reply was lost, has deleted it
			}
			sent = sent || conn.Lost(err) && !errors.Is(err, conn.ErrNotSent)
			return struct{}{}, err
		})
	})
	if err != nil && !IsGone(err) {
		s.log.Error("cannot delete own znode; it is deleted with the session", "path", path, "error", err)
	}
	return err
}

// DeleteOwned deletes an ephemeral znode that this session has created by CreateNamed or
// CreateProtected, with the guarantees of Delete. stat is the last known record of the znode. A
// later znode of the same name is not deleted.
//
// ZooKeeper cannot compare a czxid when it deletes. So the deletion compares the version, and is
// sent on a connection on which the znode was read. The first one needs no read if deletion, the
// watch that DeletionW has set on the znode, would have fired on that connection. One case
// remains: while one request is in flight, another client deletes the znode, and a new znode of
// that name reaches the same version. The request then deletes the new znode.
//
// A server may refuse to show the znode (since ZooKeeper 3.9). Then only the version is compared,
// once.
func (s *Session) DeleteOwned(path string, stat Stat, deletion *Watch) <-chan error {
	return s.inBackground(func(life context.Context) error { return s.deleteOwned(life, path, stat, deletion) })
}

func (s *Session) deleteOwned(life context.Context, path string, stat Stat, deletion *Watch) error {
	last := stat
	return s.deleteVersion(life, path, func(sent bool) (Stat, error) {
		watched := deletion != nil && s.watches.armed(watchKey{path: s.full(path), children: true}, deletion)
		deletion = nil // a later request follows a read
		if watched {
			return last, nil
		}
		now, err := s.reread(life, path, stat)
		switch {
		case err == nil:
			last = now
		case errors.Is(err, recipes.ErrAccessDenied) && !sent:
			err = nil
		}
		return last, err
	})
}

// deleteVersion deletes a znode of this session by its version. record runs before each request
// and returns the znode's record. If the connection has ended since, the request is not sent. sent
// reports whether an earlier request was sent.
func (s *Session) deleteVersion(life context.Context, path string, record func(sent bool) (Stat, error)) error {
	d := exchange{session: s}
	d.prepare = func(context.Context) error {
		stat, err := record(d.sent != nil)
		d.requests = []conn.Request{conn.Delete(s.full(path), stat.Version)}
		return err
	}
	d.send(life)
	return d.deletes(life, path, conn.Reply.Err, func(err error) (again bool, _ error) {
		if s.Throttled(life, err) || errors.Is(err, recipes.ErrBadVersion) {
			return true, nil
		}
		s.log.Error("cannot delete own znode; it is deleted with the session", "path", path, "error", err)
		return false, err
	})
}

// deletes awaits an exchange that deletes the znode at path. send has sent it. deletes repeats it
// until the outcome is known, or the session has ended. The error matches ErrNoNode if the znode
// did not exist before anything was sent. refused decides about any other refusal.
func (a *exchange) deletes(life context.Context, path string, read func(conn.Reply) error, refused func(error) (again bool, _ error)) error {
	s := a.session
	for sent := false; ; a.send(life) {
		replies, err := a.await(life)
		if err == nil {
			err = read(replies[0])
		}
		switch {
		case err == nil:
			return nil
		case s.Err() != nil:
			return s.Err()
		case errors.Is(err, recipes.ErrNoNode):
			if sent {
				return nil // an earlier attempt, whose reply was lost, has deleted it
			}
			return fmt.Errorf("delete %s: %w", path, recipes.ErrNoNode)
		case conn.Lost(err):
			sent = sent || !errors.Is(err, conn.ErrNotSent)
			if _, _, err := s.connectedAfter(life, a.connection); err != nil {
				return s.Err()
			}
		default:
			if again, err := refused(err); !again {
				return err
			}
		}
	}
}

// reread reads the record of the znode that had the record before. The error matches ErrNoNode if
// that znode is deleted, even if another one has its name.
func (s *Session) reread(life context.Context, path string, before Stat) (Stat, error) {
	now, err := RetryThrottled(life, s, func() (Stat, error) { return s.Stat(life, path) })
	if err == nil && now.Czxid != before.Czxid {
		err = fmt.Errorf("read %s: %w", path, recipes.ErrNoNode)
	}
	return now, err
}

// IsGone reports whether err means that a znode, or the session that would own it, does not
// exist.
func IsGone(err error) bool {
	return errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrSessionLost)
}

// Removal is the deletion of a znode by its owner, which several goroutines may request. One
// deletion runs at a time. Once the znode is known to be deleted (nil or ErrNotHeld), the
// result stays the same. If the server refuses the deletion, the next call tries again, because
// no other client deletes the znode.
type Removal struct {
	mu   sync.Mutex
	last *removalRun // nil if there was no attempt, or the last one was refused
}

type removalRun struct {
	done chan struct{} // closed when err is set
	err  error
}

// Run waits for the deletion in progress, or starts one, and returns its result. If another caller
// had started the deletion and it is refused, Run retries once, because the refusal may be older
// than this call. If ctx is done first, Run returns ctx's error after the text what, and the
// deletion continues. start must call settle once, even then.
func (r *Removal) Run(ctx context.Context, what string, start func(settle func(error))) error {
	for later := false; ; later = true {
		t, first := r.attempt(start)
		select {
		case <-t.done:
		case <-ctx.Done():
			if !Happened(t.done) { // otherwise the result counts
				return fmt.Errorf("%s: %w", what, ctx.Err())
			}
		}
		if first || later {
			return t.err
		}
	}
}

// Start is Run for callers that do not need the result.
func (r *Removal) Start(start func(settle func(error))) { r.attempt(start) }

// attempt returns the current attempt, and whether it has started it.
func (r *Removal) attempt(start func(settle func(error))) (t *removalRun, first bool) {
	r.mu.Lock()
	t = r.last
	if first = t == nil; first {
		t = &removalRun{done: make(chan struct{})}
		r.last = t
	}
	r.mu.Unlock()
	if first {
		start(func(err error) { r.settle(t, err) })
	}
	return t, first
}

func (r *Removal) settle(t *removalRun, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && !errors.Is(err, recipes.ErrNotHeld) {
		r.last = nil
	}
	t.err = err
	close(t.done)
}
