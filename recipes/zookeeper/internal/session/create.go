package session

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strings"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// protectedPrefix starts the name of every protected znode, before a GUID. Curator and
// go-zookeeper use the same prefix.
const protectedPrefix = "_c_"

// CreateProtected creates an ephemeral sequential znode below dir, named
// _c_<guid>-<name><sequence>, and returns its path. It creates missing parents, as containers
// if the server supports them.
//
// The GUID finds the znode again after the reply to its creation was lost: "the client should
// call getChildren() and check for a node containing the guid" (ZooKeeper Recipes, "Recoverable
// Errors and the GUID"). Two steps are added to the text. A sync comes first, because the
// listing may come from a server that has not received the creation yet. And the owner is
// checked, because a name alone does not show which session owns the znode.
//
// On error no znode remains. If ctx is done while the outcome is unknown, the creation
// continues in the background and the znode is deleted.
func (s *Session) CreateProtected(ctx context.Context, dir, name string, data []byte) (string, error) {
	return s.CreateProtectedIn(ctx, dir, name, data, s.Ensure)
}

// CreateProtectedIn is CreateProtected with the function that creates a missing dir: Ensure or
// Provide.
func (s *Session) CreateProtectedIn(ctx context.Context, dir, name string, data []byte, parent func(context.Context, string) error) (string, error) {
	if err := s.fits(dir, data, packetSlack); err != nil {
		return "", err
	}
	return detached(ctx, s, "create below "+dir,
		func(life context.Context) (string, error) { return s.create(ctx, life, dir, name, data, parent) },
		func(life context.Context, path string) { s.deleteUntilKnown(life, path) }, nil)
}

// create creates the znode. It does not return before the outcome is known, unless life, the
// session's context, is done. It sends no new creation once ctx is done.
func (s *Session) create(ctx, life context.Context, dir, name string, data []byte, parent func(context.Context, string) error) (string, error) {
	prefix := protectedPrefix + uuid.NewString() + "-"
	base := gopath.Join(dir, prefix+name)
	return creation(ctx, life, s, base, parent, func(r conn.Sender) (string, error) {
		path, err := r.Create(s.full(base), data, conn.Ephemeral|conn.Sequence, s.acl)
		return s.local(path), err
	}, func(connection int) (path string, found bool, err error) {
		path, err = RetryThrottled(life, s, func() (string, error) { return s.find(life, connection, dir, prefix) })
		return path, path != "", err
	})
}

// creation repeats a creation until its outcome is known. After a lost reply, find searches on
// a connection later than the given one. parent creates the missing parents of path.
func creation[T any](ctx, life context.Context, s *Session, path string, parent func(context.Context, string) error,
	send func(conn.Sender) (T, error), find func(connection int) (made T, found bool, err error)) (T, error) {
	var none T
	for {
		connection, _, err := s.connectedAfter(ctx, 0)
		if err != nil {
			return none, err
		}
		made, err := call(life, s, send)
		switch {
		case err == nil:
			return made, nil
		case errors.Is(err, recipes.ErrNoNode):
			if err := parent(ctx, gopath.Dir(path)); err != nil {
				return none, err
			}
		case conn.Lost(err):
			if made, found, err := find(connection); found || err != nil {
				return made, err
			}
			// The creation has not happened, or another client has deleted the znode.
		case life.Err() != nil:
			return none, s.Err()
		default:
			return none, answer("create", path, err)
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
	}
}

// find searches for the child of dir whose name starts with prefix, on a connection later than
// the given one. It returns "" if it finds no child. After the sync, an earlier creation cannot
// happen any more: the ensemble has ordered it before the sync, or refuses it (SESSIONMOVED).
func (s *Session) find(ctx context.Context, connection int, dir, prefix string) (string, error) {
	if _, _, err := s.connectedAfter(ctx, connection); err != nil {
		return "", err
	}
	if err := s.Sync(ctx, dir); err != nil {
		return "", err
	}
	names, _, err := s.List(ctx, dir) // List is not limited by SessionConfig.MaxPacket
	if errors.Is(err, recipes.ErrNoNode) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		path := gopath.Join(dir, name)
		stat, err := s.Stat(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if stat.EphemeralOwner != s.id {
			return "", fmt.Errorf("%w: %s has owner %#x, not session %#x", recipes.ErrInternal, path, stat.EphemeralOwner, s.id)
		}
		return path, nil
	}
	return "", nil
}

// packetSlack is room in a packet for headers and the path's sequence number.
const packetSlack = 512

// fits checks that a packet has room for data and the given number of other bytes. The error
// says how many bytes of data fit, because MaxPacket limits the whole packet.
func (s *Session) fits(path string, data []byte, beside int) error {
	most := s.wire.MaxPacket - len(s.full(path)) - beside - s.aclSize
	if len(data) > most {
		return fmt.Errorf("%w: %d bytes of data for %s; at most %d fit into a packet of SessionConfig.MaxPacket, %d bytes",
			recipes.ErrTooLarge, len(data), path, max(most, 0), s.wire.MaxPacket)
	}
	return nil
}

// sizeOf returns the size of an ACL in a packet.
func sizeOf(acl []jute.ACL) int {
	size := 0
	for _, a := range acl {
		size += len(a.Scheme) + len(a.ID) + 12
	}
	return size
}

// detached runs create, and stops waiting for it when ctx is done or the session is lost. Then
// create continues, and undo reverts what it creates. create must not return before its outcome
// is known, unless the session has ended. end, if not nil, is called when both are finished.
func detached[T any](ctx context.Context, s *Session, what string, create func(life context.Context) (T, error), undo func(context.Context, T), end func()) (T, error) {
	type result struct {
		made T
		err  error
	}
	var zero T
	done := make(chan result)
	if end == nil {
		end = func() {}
	}
	started := s.Background(func(life context.Context) {
		defer end()
		made, err := create(life)
		select {
		case done <- result{made, err}:
		case <-ctx.Done():
			// The caller has returned or will return.
			if err == nil {
				undo(life, made)
			}
		case <-life.Done():
		}
	})
	if !started {
		end()
		return zero, s.Err()
	}
	select {
	case r := <-done:
		return r.made, r.err
	case <-s.Done():
		return zero, s.Err()
	case <-ctx.Done():
		return zero, s.Interrupted(what, ctx)
	}
}

// Ensure creates path and its missing parents, as containers if the server supports them.
// Calling it twice is harmless.
func (s *Session) Ensure(ctx context.Context, path string) error {
	if err := s.ensureWith(ctx, s.full(path), s.acl); err != nil {
		return fmt.Errorf("create the parents of %s: %w", path, err)
	}
	return nil
}

// Provide creates path, if it is missing, as a persistent znode without data, which remains
// when it has no children. It creates missing parents like Ensure. Calling it twice is
// harmless, so no error leaves the outcome unknown.
func (s *Session) Provide(ctx context.Context, path string) error {
	return s.ProvideIn(ctx, path, s.Ensure)
}

// ProvideIn is Provide with the function that creates the missing parents.
func (s *Session) ProvideIn(ctx context.Context, path string, parent func(context.Context, string) error) error {
	var t Txn
	t.Create(path, nil, false)
	for {
		err := s.Commit(ctx, t)
		switch {
		case err == nil, errors.Is(err, recipes.ErrNodeExists):
			return nil
		case errors.Is(err, recipes.ErrNoNode):
			if err := parent(ctx, gopath.Dir(path)); err != nil {
				return err
			}
		case s.Unsettled(ctx, err):
		case errors.Is(err, recipes.ErrUnknownOutcome):
			return s.Interrupted("create "+path, ctx)
		default:
			return err
		}
	}
}

// EnsureQueuePath is Ensure for the path of a wait queue. The path gets the ACL of the bare znodes,
// so the server keeps that ACL in its cache as long as the wait queue exists.
func (s *Session) EnsureQueuePath(ctx context.Context, path string) error {
	if err := s.ensureWith(ctx, s.full(path), s.bareACL); err != nil {
		return fmt.Errorf("create the parents of %s: %w", path, err)
	}
	return nil
}

// ensureWith creates the last znode with the given ACL, and missing parents with the session's
// ACL.
func (s *Session) ensureWith(ctx context.Context, full string, acl []jute.ACL) error {
	for {
		_, err := readWith(ctx, s, "create", full, func(r conn.Sender) (struct{}, error) {
			return struct{}{}, r.CreateParent(full, acl)
		})
		if errors.Is(err, recipes.ErrNodeExists) {
			return nil
		}
		if !errors.Is(err, recipes.ErrNoNode) || full == "/" {
			return err
		}
		// The parent is missing, or it was an empty container that the server deleted between
		// the two calls.
		if err := s.ensureWith(ctx, gopath.Dir(full), s.acl); err != nil {
			return err
		}
	}
}
