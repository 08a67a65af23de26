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

// markers are those of a shared lock, the readers' first.
var markers = line.Spoken{
	recipes.ZooKeeper: {line.Read, line.Write},
	recipes.Curator:   {line.CuratorRead, line.CuratorWrite},
	recipes.Kazoo:     {line.KazooRead, line.KazooLock},
}

// reads reports whether a contender of that marker is a reader.
func reads(marker string) bool {
	for _, m := range markers {
		if marker == m[0] {
			return true
		}
	}
	return false
}

type sharedLock struct {
	line *line.Line
	cfg  recipes.SharedLockConfig
}

// NewShared returns the shared lock at path.
func NewShared(lines *line.Lines, path string, cfg recipes.SharedLockConfig) (recipes.SharedLock, error) {
	l, err := lines.At("shared lock", path, cfg.Strategy, cfg.Dialect, markers)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("shared lock %s: %w", path, err)
	}
	if err := l.Stores(cfg.Data); err != nil {
		return nil, fmt.Errorf("shared lock %s: %w", path, err)
	}
	l.Rule, l.Passes = line.Shared(l.Markers[0]), passes
	if cfg.Revocable {
		l.Asked = isRevoked
	}
	return &sharedLock{line: l, cfg: cfg}, nil
}

// passes is line.Line.Passes: a reader goes first when its predecessor, a writer, has
// downgraded.
//
// No writer ever writes beside a reader then. A writer sets the mark while it
// holds, and it holds because every contender ahead of it had gone; no contender
// comes ahead of it later. So only two kinds of contenders are ahead of the reader:
// the downgraded one, which does not write any more, and readers between the two. A
// writer between them would be nearer. A writer behind them waits, as always, until
// both znodes are gone.
//
// The mark is read after the listing in which that writer was the predecessor. It is
// never taken back: data that has lost it, to an operator's "unlock", only makes
// readers wait.
func passes(me line.Entry) func(data []byte) bool {
	if !reads(me.Kind) {
		return nil
	}
	return func(data []byte) bool { return decode(data).downgraded }
}

func (l *sharedLock) Path() string { return l.line.Path }

func (l *sharedLock) AcquireRead(ctx context.Context) (recipes.SharedHold, error) {
	return l.enter(ctx, recipes.Reading, false)
}

func (l *sharedLock) AcquireWrite(ctx context.Context) (recipes.SharedHold, error) {
	return l.enter(ctx, recipes.Writing, false)
}

func (l *sharedLock) TryRead(ctx context.Context) (recipes.SharedHold, error) {
	return l.enter(ctx, recipes.Reading, true)
}

func (l *sharedLock) TryWrite(ctx context.Context) (recipes.SharedHold, error) {
	return l.enter(ctx, recipes.Writing, true)
}

func (l *sharedLock) enter(ctx context.Context, mode recipes.Mode, try bool) (recipes.SharedHold, error) {
	kind := l.line.Markers[0]
	if mode == recipes.Writing {
		kind = l.line.Markers[1]
	}
	d := nodeData{revocable: l.cfg.Revocable, grace: l.cfg.Grace, data: l.cfg.Data}
	hold, err := l.line.Enter(ctx, line.Options{Kind: kind, Data: d.encode(), Try: try, Joined: l.cfg.Joined})
	if err != nil {
		return nil, l.failed(err)
	}
	return &sharedHold{Hold: hold, session: l.line.Session, writer: mode == recipes.Writing}, nil
}

// ResumeWaiting is line.Line.ResumeWaiting.
func (l *sharedLock) ResumeWaiting(ctx context.Context, znode string, try bool) (recipes.SharedHold, error) {
	hold, err := l.line.ResumeWaiting(ctx, znode, line.Options{Try: try, Joined: l.cfg.Joined})
	if err != nil {
		return nil, l.failed(err)
	}
	return &sharedHold{Hold: hold, session: l.line.Session, writer: l.writes(znode)}, nil
}

// writes reports whether a contender's znode is a writer's.
func (l *sharedLock) writes(znode string) bool {
	return !reads(line.Parse([]string{gopath.Base(znode)}, l.line.Markers...)[0].Kind)
}

// Resume is line.Line.Resume, with the mode that the znode tells. A writer that has
// downgraded reads.
func (l *sharedLock) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.SharedHold, error) {
	// Read before: what is resumed is not given back by an error.
	node, err := l.line.Session.Get(ctx, znode)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return nil, l.failed(err)
	}
	hold, err := l.line.Resume(ctx, znode, token) // which says what became of a znode that is gone
	if err != nil {
		return nil, l.failed(err)
	}
	h := &sharedHold{Hold: hold, session: l.line.Session, writer: l.writes(znode)}
	h.downgraded.Store(decode(node.Data).downgraded)
	return h, nil
}

func (l *sharedLock) failed(err error) error {
	return fmt.Errorf("shared lock %s: %w", l.line.Path, err)
}

func (l *sharedLock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	all, err := SharedContenders.At(ctx, l.line.Session, l.line.Path, l.line.Dialect)
	if err != nil {
		return nil, l.failed(err)
	}
	return all, nil
}

// SharedContenders reads the contenders of a shared lock. The first one holds, and
// so does every reader without a writer ahead.
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
	return isKind(path, line.Write) || isKind(path, line.CuratorWrite) || isKind(path, line.KazooLock)
}

func isKind(path, marker string) bool {
	return len(line.Parse([]string{gopath.Base(path)}, marker)) == 1
}

// sharedHold is a *line.Hold that knows whether it may write.
type sharedHold struct {
	*line.Hold
	session    *session.Session
	writer     bool // was granted as one
	downgraded atomic.Bool
}

func (h *sharedHold) Mode() recipes.Mode {
	if h.writer && !h.downgraded.Load() {
		return recipes.Writing
	}
	return recipes.Reading
}

// Downgrade sets the mark. To set it twice is harmless, so Downgrade repeats it
// when the outcome is unknown. A request to give way that comes in between changes
// the version, and is kept.
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
	for {
		if err := h.Err(); err != nil {
			return err
		}
		node, err := h.session.Get(ctx, h.Znode())
		if errors.Is(err, recipes.ErrNoNode) {
			return h.Removed()
		}
		if err != nil {
			return err
		}
		d := decode(node.Data)
		if d.downgraded {
			return nil
		}
		d.downgraded = true
		err = znode.SetData(ctx, h.session, h.Znode(), d.encode(), node.Stat.Version)
		switch {
		case err == nil:
			return nil
		case znode.TryAgain(ctx, h.session, err), errors.Is(err, recipes.ErrNoNode):
			continue
		}
		return znode.GivenUp(ctx, h.session, "mark "+h.Znode(), err)
	}
}
