package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// protectedPrefix starts the name of every protected znode, before a GUID. Curator and
// go-zookeeper use the same prefix.
const protectedPrefix = "_c_"

// NewGUID returns a random GUID of version 8, which RFC 9562 leaves to vendors. Other libraries
// use version 4, or no version. So a name with a GUID shows whether this library created it.
func NewGUID() uuid.UUID { return ours(uuid.New()) }

func ours(id uuid.UUID) uuid.UUID {
	id[6] = id[6]&0x0f | 0x80
	return id
}

// ProtectedPrefix returns how the name of a protected znode with a GUID begins.
func ProtectedPrefix(guid uuid.UUID) string { return protectedPrefix + ours(guid).String() + "-" }

// Ours reports whether a znode's name has a GUID of this library: that of a protected znode, or
// the whole name, without hyphens.
func Ours(name string) bool {
	guid, protected := strings.CutPrefix(name, protectedPrefix)
	if protected {
		guid = guid[:min(len(guid), len(uuid.Nil.String()))]
	}
	id, err := uuid.Parse(guid)
	return err == nil && id.Version() == 8 && protected == strings.Contains(guid, "-")
}

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
	return s.CreateProtectedAs(ctx, uuid.New(), dir, name, data, parent)
}

// CreateProtectedAs is CreateProtectedIn with the GUID, which no other znode below dir has.
func (s *Session) CreateProtectedAs(ctx context.Context, guid uuid.UUID, dir, name string, data []byte, parent func(context.Context, string) error) (string, error) {
	if err := s.fits(dir, data, packetSlack); err != nil {
		return "", err
	}
	prefix := ProtectedPrefix(guid)
	path := gopath.Join(dir, prefix+name)
	created, err := s.reserve(ctx, path, false)
	if err != nil {
		return "", err
	}
	c := &creation[string]{path: path, parent: parent, made: func(replies []conn.Reply) (string, error) {
		made, err := replies[0].Path()
		return s.local(made), err
	}}
	c.exchange = exchange{session: s, requests: []conn.Request{conn.Create(s.full(path), data, conn.Ephemeral|conn.Sequence, s.acl)}}
	c.find = func(life context.Context) (*string, error) {
		names, err := c.present(life)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, prefix) })
		if at < 0 {
			return nil, nil
		}
		found := gopath.Join(dir, names[at])
		stat, err := s.Stat(life, found)
		switch {
		case errors.Is(err, recipes.ErrNoNode):
			return nil, nil
		case errors.Is(err, recipes.ErrAccessDenied):
			return &found, nil // an error would leave the znode; its GUID identifies it
		}
		return &found, cmp.Or(err, s.owns(found, stat))
	}
	return Detached(ctx, s, "create below "+dir,
		func(life context.Context) (string, error) { return c.run(ctx, life) },
		func(life context.Context, path string) { s.deleteUntilKnown(life, path) }, created)
}

type creation[T any] struct {
	exchange
	path     string
	parent   func(context.Context, string) error // creates the parent of path
	settle   func(answered bool)                 // if not nil, ends each attempt
	unusable func(error) bool                    // if not nil, reports that the caller must create another znode
	made     func([]conn.Reply) (T, error)       // decodes the replies
	find     func(context.Context) (*T, error)   // searches for the znode after a lost reply; nil: it does not exist
}

func (c *creation[T]) run(ctx, life context.Context) (T, error) {
	c.send(ctx)
	return c.finish(ctx, life)
}

// finish awaits the exchange that send has sent, and repeats the creation after a failure. It
// does not return before the outcome is known, unless life, the session's context, is done. It
// sends no new creation once ctx is done.
func (c *creation[T]) finish(ctx, life context.Context) (none T, _ error) {
	s := c.session
	for ; ; c.send(ctx) {
		replies, err := c.await(life)
		if c.settle != nil {
			c.settle(err == nil)
		}
		if err == nil {
			err = replies[0].Err()
		}
		switch {
		case err == nil:
			return c.made(replies)
		case errors.Is(err, recipes.ErrNoNode):
			if err := c.parent(ctx, gopath.Dir(c.path)); err != nil {
				return none, err
			}
		case c.unusable != nil && c.unusable(err):
			return none, ErrNoBareZnode
		case conn.Lost(err):
			found, err := RetryThrottled(life, s, func() (*T, error) { return c.find(life) })
			if err != nil {
				return none, err
			}
			if found != nil {
				return *found, nil
			}
			// The creation has not happened, or another client has deleted the znode.
		case life.Err() != nil:
			return none, s.Err()
		case ctx.Err() != nil, s.Err() != nil:
			return none, err
		default:
			return none, answer("create", c.path, err)
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
	}
}

// present lists the parent of the znode, on a connection later than the last attempt's. After
// the sync, an earlier creation cannot happen any more: the ensemble has ordered it before the
// sync, or refuses it (SESSIONMOVED). List is not limited by SessionConfig.MaxPacket.
func (c *creation[T]) present(ctx context.Context) ([]string, error) {
	dir := gopath.Dir(c.path)
	if _, _, err := c.session.connectedAfter(ctx, c.connection); err != nil {
		return nil, err
	}
	if err := c.session.Sync(ctx, dir); err != nil {
		return nil, err
	}
	names, _, err := c.session.List(ctx, dir)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// owns checks that a znode with a name of this session belongs to it.
func (s *Session) owns(path string, stat Stat) error {
	if stat.EphemeralOwner == s.id {
		return nil
	}
	return fmt.Errorf("%w: %s has owner %#x, not session %#x", recipes.ErrInternal, path, stat.EphemeralOwner, s.id)
}

// Detached runs create, and stops waiting for it when ctx is done or the session is lost. Then
// create continues, and undo reverts what it creates. create must not return before its outcome
// is known, unless the session has ended. end, if not nil, is called when both are finished.
func Detached[T any](ctx context.Context, s *Session, what string, create func(life context.Context) (T, error), undo func(context.Context, T), end func()) (T, error) {
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
		_, err := readWith(ctx, s, "create", full, func() (struct{}, error) {
			return struct{}{}, s.wire.CreateParent(full, acl)
		})
		if errors.Is(err, recipes.ErrNodeExists) {
			return nil
		}
		if err == nil && full == s.wire.Chroot {
			s.log.Info("the chroot did not exist, and was created", "chroot", full)
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

// CreateNamed creates an ephemeral znode of exactly this path and returns its record. It
// creates missing parents like CreateProtected. If the path exists, the error matches
// ErrNodeExists, even if this session owns the znode.
//
// The name contains no GUID. So after a lost reply, CreateNamed recognizes its znode by the
// owner, this session, and by a czxid that is larger than the last transaction id seen when the
// call began. Earlier creations of this session do not have a larger one. Only one call per path
// runs at a time in a session.
//
// On error no znode remains, in the sense of CreateProtected. There is one exception: the reply
// is lost, and the ACL does not let the session read the znode (since ZooKeeper 3.9). The znode
// may then be another client's.
func (s *Session) CreateNamed(ctx context.Context, path string, data []byte) (Stat, error) {
	return s.CreateNamedIn(ctx, path, data, s.Ensure)
}

// CreateNamedIn is CreateNamed with the function that creates a missing parent: Ensure or
// Provide.
func (s *Session) CreateNamedIn(ctx context.Context, path string, data []byte, parent func(context.Context, string) error) (Stat, error) {
	if err := s.fits(path, data, packetSlack); err != nil {
		return Stat{}, err
	}
	// A creation that is being undone also has the name, so the next call waits for it.
	free, err := s.names.take(ctx, path)
	if err != nil {
		return Stat{}, s.Interrupted("create "+path, ctx)
	}
	created, err := s.reserve(ctx, path, false)
	if err != nil {
		free()
		return Stat{}, err
	}
	release := func() { free(); created() }
	begun := s.wire.LastZxid()
	c := &creation[Stat]{path: path, parent: parent, made: func([]conn.Reply) (none Stat, _ error) { return }} // the reply does not contain the record
	c.exchange = exchange{session: s, requests: []conn.Request{conn.Create(s.full(path), data, conn.Ephemeral, s.acl)}}
	c.find = func(life context.Context) (*Stat, error) {
		if _, _, err := s.connectedAfter(life, c.connection); err != nil {
			return nil, err
		}
		stat, err := s.syncedStat(life, path)
		switch {
		case stat.EphemeralOwner == s.id && stat.Czxid > begun:
			return &stat, nil
		case errors.Is(err, recipes.ErrNoNode):
			return nil, nil
		}
		return nil, err
	}
	return Detached(ctx, s, "create "+path, func(life context.Context) (Stat, error) {
		stat, err := c.run(ctx, life)
		if err != nil || stat != (Stat{}) {
			return stat, err
		}
		stat, err = RetryThrottled(life, s, func() (Stat, error) { return s.Stat(life, path) })
		if errors.Is(err, recipes.ErrNoNode) || err == nil && stat.EphemeralOwner != s.id {
			return Stat{}, fmt.Errorf("%w: %s", recipes.ErrRemoved, path)
		}
		if err != nil && !IsGone(err) {
			// Without a record, a second one could hit another znode.
			_, _ = RetryThrottled(life, s, func() (struct{}, error) { return struct{}{}, s.DeleteOnce(life, path, 0) })
		}
		return stat, err
	}, func(life context.Context, stat Stat) { s.deleteOwned(life, path, stat, nil) }, release)
}

func (s *Session) syncedStat(ctx context.Context, path string) (Stat, error) {
	if err := s.Sync(ctx, path); err != nil {
		return Stat{}, err
	}
	return s.Stat(ctx, path)
}

// names serializes the creations of one path.
type names struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the path is free
}

func (n *names) take(ctx context.Context, path string) (release func(), err error) {
	for {
		n.mu.Lock()
		taken, ok := n.busy[path]
		if !ok {
			if n.busy == nil {
				n.busy = make(map[string]chan struct{})
			}
			free := make(chan struct{})
			n.busy[path] = free
			n.mu.Unlock()
			return func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				delete(n.busy, path)
				close(free)
			}, nil
		}
		n.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
