package rwlock

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type priorityLock struct {
	session  *session.Session
	path     string
	strategy recipes.Strategy
	cfg      recipes.PriorityLockConfig
}

// NewPriority returns the priority lock at path.
func NewPriority(lines *line.Lines, path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	l, err := lines.At("priority lock", path, cfg.Strategy)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("priority lock %s: %w", path, err)
	}
	return &priorityLock{session: l.Session, path: path, strategy: l.Strategy, cfg: cfg}, nil
}

func (l *priorityLock) Path() string { return l.path }

func (l *priorityLock) AcquireRead(ctx context.Context) (recipes.PriorityHold, error) {
	return l.enter(ctx, recipes.Reading, false)
}

func (l *priorityLock) AcquireWrite(ctx context.Context) (recipes.PriorityHold, error) {
	return l.enter(ctx, recipes.Writing, false)
}

func (l *priorityLock) TryRead(ctx context.Context) (recipes.PriorityHold, error) {
	return l.enter(ctx, recipes.Reading, true)
}

func (l *priorityLock) TryWrite(ctx context.Context) (recipes.PriorityHold, error) {
	return l.enter(ctx, recipes.Writing, true)
}

func (l *priorityLock) failed(err error) error {
	return fmt.Errorf("priority lock %s: %w", l.path, err)
}

func (l *priorityLock) at(name string) string { return gopath.Join(l.path, name) }

// enter joins, waits and claims. On an error nothing of the contender remains,
// or it goes in the background, as line.Enter has it.
func (l *priorityLock) enter(ctx context.Context, mode recipes.Mode, try bool) (recipes.PriorityHold, error) {
	if err := ctx.Err(); err != nil {
		return nil, l.failed(err)
	}
	e := envelope{revocable: l.cfg.Revocable, grace: l.cfg.Grace, data: l.cfg.Data}
	path, err := l.session.CreateProtected(ctx, l.path, waitingMarker(mode, l.cfg.Priority), e.encode())
	if err != nil {
		return nil, l.failed(err)
	}
	me, _ := parseSpot(gopath.Base(path))
	c := &claimant{lock: l, me: me, data: e.encode(), try: try, joined: l.cfg.Joined}
	grant, err := c.wait(ctx)
	if err == nil {
		return &priorityHold{Grant: grant, lock: l, mode: mode}, nil
	}
	left := c.leave()
	if errors.Is(err, recipes.ErrContended) {
		select {
		case <-left:
		case <-ctx.Done():
			return nil, l.failed(fmt.Errorf("%w; leaving the line: %w", err, ctx.Err()))
		}
	}
	return nil, l.failed(err)
}

// register is the path's znode: its version counts writers' claims and hand-offs,
// its data names the heir.
type register struct {
	version int32
	heir    string
}

const heirWord = "heir="

// look reads the register and then the line. The order matters: a claim that is
// based on both is refused if a writer's was made after the register was read, so
// any writer who holds when it is made was listed after it.
func (l *priorityLock) look(ctx context.Context) (register, []spot, error) {
	node, err := l.session.Get(ctx, l.path)
	if err != nil {
		return register{}, nil, err
	}
	r := register{version: node.Stat.Version}
	heir, ok := parseHeir(node.Data)
	if !ok {
		return register{}, nil, fmt.Errorf("%w: the path holds %q, which is no heir", recipes.ErrMismatch, znode.Excerpt(string(node.Data)))
	}
	names, err := l.session.Children(ctx, l.path)
	if err != nil {
		return register{}, nil, err
	}
	all := rankedSpots(names, heir)
	if waits(all, heir) {
		r.heir = heir
	}
	return r, all, nil
}

// parseHeir returns the heir in the path's data, and whether the data is a priority
// lock's.
func parseHeir(data []byte) (heir string, ok bool) {
	if heir, ok := strings.CutPrefix(string(data), heirWord); ok {
		return heir, true
	}
	return "", len(data) == 0
}

// waits reports whether a contender of that name waits.
func waits(all []spot, name string) bool {
	for _, s := range all {
		if s.name == name && !s.holds {
			return true
		}
	}
	return false
}

func (r register) data() []byte {
	if r.heir == "" {
		return nil
	}
	return []byte(heirWord + r.heir)
}

func (l *priorityLock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	p, err := line.ReadParent(ctx, l.session, l.path, true)
	if err != nil {
		return nil, l.failed(err)
	}
	found, err := PriorityContenders(ctx, l.session, p)
	if err != nil {
		return nil, l.failed(err)
	}
	return found, nil
}

// PriorityContenders reads the contenders of a priority lock.
func PriorityContenders(ctx context.Context, s *session.Session, p line.Parent) ([]recipes.Contender, error) {
	heir, _ := parseHeir(p.Data)
	ranked := rankedSpots(p.Names, heir)
	entries := make([]line.Entry, len(ranked))
	for i, s := range ranked {
		entries[i] = line.Entry{Name: s.name, Sequence: s.sequence}
	}
	found, err := p.Contenders(ctx, s, recipes.KindPriorityLock, entries)
	for i := range found {
		c := &found[i]
		readMarks(c)
		s, _ := parseSpot(gopath.Base(c.Znode))
		c.Mode, c.Priority, c.Holds = s.mode, s.priority, s.holds
		c.Successor = !s.holds && s.name == heir
		if !c.Holds {
			c.Token = 0
		}
	}
	return found, err
}
