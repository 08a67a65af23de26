package rwlock

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// markers are those of a shared lock, first the reader's and then the writer's.
var markers = line.Spoken{
	recipes.ZooKeeper: {line.Read, line.Write},
	recipes.Curator:   {line.CuratorRead, line.CuratorWrite},
	recipes.Kazoo:     {line.KazooRead, line.KazooLock},
}

func reads(marker string) bool {
	for _, m := range markers {
		if marker == m[0] {
			return true
		}
	}
	return false
}

type sharedLock struct {
	line.Recipe[recipes.SharedHold]
	modes[recipes.SharedHold]
	revoker
	cfg recipes.SharedLockConfig
}

func NewShared(lines *line.Lines, path string, cfg recipes.SharedLockConfig) (recipes.SharedLock, error) {
	of, err := lines.At("shared lock", path, cfg.Strategy, cfg.Dialect, markers)
	if err != nil {
		return nil, err
	}
	of.Rule, of.Passes = line.Shared(of.Markers[0]), passes
	if cfg.Revocable {
		of.Asked = isRevoked
	}
	l := &sharedLock{cfg: cfg}
	l.Recipe, err = line.NewRecipe(of, "shared lock", SharedContenders, l.hold, cfg.Validate(), of.Stores(cfg.Data))
	if err != nil {
		return nil, err
	}
	l.Options.Joined = cfg.Joined
	l.modes = modes[recipes.SharedHold]{l.acquire}
	l.revoker = revoker{l.Session, l.znodesOf}
	return l, nil
}

// hold is a grant in the mode that its znode's name has.
func (l *sharedLock) hold(h *line.Hold) recipes.SharedHold {
	marker := line.Parse([]string{gopath.Base(h.Znode())}, l.Line.Markers...)[0].Kind
	return &sharedHold{Hold: h, session: l.Session, writer: !reads(marker)}
}

// znodesOf is revoker.znodes.
func (l *sharedLock) znodesOf(path string) ([]string, error) {
	if !l.Line.Has(path) {
		return nil, fmt.Errorf("revoke: %w: %q is not a contender of the shared lock %s", recipes.ErrInvalid, path, l.Path())
	}
	return []string{path}, nil
}

// passes is line.Line.Passes: a reader is granted behind a writer that has downgraded, if
// that writer is its predecessor.
//
// No writer ever writes while such a reader holds the lock. A writer sets the mark while
// it holds the lock, so no contender was ahead of it, and none joins ahead of it later. So
// only two kinds of contenders are ahead of the reader: the downgraded writer, which does
// not write any more, and readers between the two. A writer between them would be the
// predecessor. A writer behind them waits, as always, until both znodes are gone.
//
// The mark is read after the listing in which that writer was the predecessor. It is
// never taken back. If an operator's "unlock" overwrites it, readers only have to wait.
func passes(me line.Entry) func(data []byte) bool {
	if !reads(me.Kind) {
		return nil
	}
	return func(data []byte) bool { return decode(data).downgraded }
}

func (l *sharedLock) acquire(ctx context.Context, mode recipes.Mode, try bool) (recipes.SharedHold, error) {
	o := l.Trying(try)
	o.Kind = l.Line.Markers[0]
	if mode == recipes.Writing {
		o.Kind = l.Line.Markers[1]
	}
	o.Data = nodeData{revocable: l.cfg.Revocable, grace: l.cfg.Grace, data: l.cfg.Data}.encode()
	return l.Enter(ctx, o)
}

// Resume is line.Line.Resume. A writer that has downgraded reads.
func (l *sharedLock) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.SharedHold, error) {
	// The znode is read first: after the hold is resumed, an error here would leak the hold.
	node, err := l.Session.Get(ctx, znode)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return nil, l.Failed(err)
	}
	h, err := l.Recipe.Resume(ctx, znode, token) // Resume reports a znode that is gone
	if err != nil {
		return nil, err
	}
	h.(*sharedHold).downgraded.Store(decode(node.Data).downgraded)
	return h, nil
}

// SharedContenders reads the contenders of a shared lock. The first contender holds the lock, and
// every reader without a writer ahead shares it.
var SharedContenders = line.Reader{Spoken: markers, Read: readShared}

func readShared(ctx context.Context, s *session.Session, p line.Parent, d recipes.Dialect) ([]recipes.Contender, error) {
	found, err := p.InLine(ctx, s, recipes.KindSharedLock, 1, markers[d])
	writer := false
	for i := range found {
		c := &found[i]
		readMarks(c)
		c.Holds = c.Holds || c.Mode == recipes.Reading && !writer
		writer = writer || c.Mode == recipes.Writing
	}
	return found, err
}

// readMarks moves the marks of a contender from its data to its fields.
func readMarks(c *recipes.Contender) {
	d := decode(c.Data)
	c.Data, c.Mode = d.data, recipes.Reading
	c.Downgraded, c.Revocable, c.Grace, c.Revoked = d.downgraded, d.revocable, d.grace, d.revoked
	if !d.downgraded && isWriter(c.Znode) {
		c.Mode = recipes.Writing
	}
}

func isWriter(path string) bool {
	name := []string{gopath.Base(path)}
	for _, m := range markers {
		if len(line.Parse(name, m[1])) == 1 {
			return true
		}
	}
	return false
}

type sharedHold struct {
	*line.Hold
	session    *session.Session
	writer     bool // at the grant
	downgraded atomic.Bool
}

func (h *sharedHold) Mode() recipes.Mode {
	if h.writer && !h.downgraded.Load() {
		return recipes.Writing
	}
	return recipes.Reading
}

// Downgrade sets the mark. Setting it twice is harmless, so Downgrade repeats it after an
// unknown outcome. A request to give way that comes in between changes the version, and
// is kept.
func (h *sharedHold) Downgrade(ctx context.Context) error {
	if !h.writer {
		return fmt.Errorf("downgrade %s: %w: it is a read lock", h.Znode(), recipes.ErrInvalid)
	}
	h.downgraded.Store(true)
	err := h.mark(ctx)
	if lost := h.Err(); err != nil && lost != nil {
		err = lost
	}
	if err != nil {
		return fmt.Errorf("downgrade %s: %w", h.Znode(), err)
	}
	return nil
}

func (h *sharedHold) mark(ctx context.Context) error {
	return znode.Retry(ctx, h.session, "mark "+h.Znode(), func() error {
		if err := h.Err(); err != nil {
			return err
		}
		node, err := h.session.Get(ctx, h.Znode())
		if errors.Is(err, recipes.ErrNoNode) {
			return h.Removed()
		}
		d := decode(node.Data)
		if err != nil || d.downgraded {
			return err
		}
		d.downgraded = true
		return znode.Listed(znode.SetData(ctx, h.session, h.Znode(), d.encode(), node.Stat.Version))
	})
}

// modes has the four calls that acquire a lock with readers and writers.
type modes[H any] struct {
	acquire func(ctx context.Context, mode recipes.Mode, try bool) (H, error)
}

func (m modes[H]) AcquireRead(ctx context.Context) (H, error) {
	return m.acquire(ctx, recipes.Reading, false)
}

func (m modes[H]) AcquireWrite(ctx context.Context) (H, error) {
	return m.acquire(ctx, recipes.Writing, false)
}

func (m modes[H]) TryRead(ctx context.Context) (H, error) {
	return m.acquire(ctx, recipes.Reading, true)
}

func (m modes[H]) TryWrite(ctx context.Context) (H, error) {
	return m.acquire(ctx, recipes.Writing, true)
}
