package line

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// Recipe is a recipe that grants its contenders by their order in a wait queue. H is the
// type that the contract has for a grant.
type Recipe[H any] struct {
	znode.Recipe
	Line    *Line
	Reader  Reader        // reads the contenders
	Grant   func(*Hold) H // makes a grant of the contract
	Options Options       // of every contender; the caller sets Try
}

// NewRecipe returns the recipe of that name whose wait queue is l.
func NewRecipe[H any](l *Line, name string, r Reader, grant func(*Hold) H, checks ...error) (Recipe[H], error) {
	base, err := znode.New(l.Session, name, l.Path, checks...)
	return Recipe[H]{Recipe: base, Line: l, Reader: r, Grant: grant}, err
}

// Enter is Line.Enter.
func (r *Recipe[H]) Enter(ctx context.Context, o Options) (H, error) {
	return r.Granted(r.Metered(ctx, func() (*Hold, error) { return r.Line.Enter(ctx, o) }))
}

// Metered is znode.Metered.
func (r *Recipe[H]) Metered(ctx context.Context, enter func() (*Hold, error)) (*Hold, error) {
	return znode.Metered(ctx, r.Recipe, enter)
}

// Resume is Line.Resume.
func (r *Recipe[H]) Resume(ctx context.Context, znode string, token recipes.Token) (H, error) {
	return r.Granted(r.Line.Resume(ctx, znode, token))
}

// ResumeWaiting is Line.ResumeWaiting.
func (r *Recipe[H]) ResumeWaiting(ctx context.Context, znode string, try bool) (H, error) {
	return r.Granted(r.Line.ResumeWaiting(ctx, znode, r.Trying(try)))
}

// Trying returns the recipe's options with Try set to try.
func (r *Recipe[H]) Trying(try bool) Options {
	o := r.Options
	o.Try = try
	return o
}

// Granted returns the grant that the contract has for a hold, or the error with the name of
// the recipe.
func (r *Recipe[H]) Granted(hold *Hold, err error) (H, error) {
	if err != nil {
		var none H
		return none, r.Failed(err)
	}
	return r.Grant(hold), nil
}

// Contenders reads the contenders.
func (r *Recipe[H]) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	all, err := r.Reader.At(ctx, r.Session, r.Path(), r.Line.Dialect)
	if err != nil {
		return nil, r.Failed(err)
	}
	return all, nil
}

// Lines creates the wait queues of one session.
type Lines struct {
	session *session.Session
	busy    *Busy
}

// Of returns the Lines of a session. They share the session's Busy, so a session needs only one
// Lines.
func Of(s *session.Session) *Lines { return &Lines{session: s, busy: new(Busy)} }

// Spoken holds the markers of a recipe, for each dialect that it supports.
type Spoken map[recipes.Dialect][]string

// At returns the wait queue at path. Only its first contender is granted. Errors begin with the
// name of the recipe.
func (ls *Lines) At(recipe, path string, strategy recipes.Strategy, dialect recipes.Dialect, spoken Spoken) (*Line, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("%s: %w", recipe, err)
	}
	strategy, err := strategy.Normalize()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", recipe, path, err)
	}
	dialect, err = dialect.Normalize()
	if err == nil && spoken[dialect] == nil {
		err = fmt.Errorf("%w: it has no dialect %s", recipes.ErrInvalid, dialect)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", recipe, path, err)
	}
	if strategy == recipes.Handoff && dialect != recipes.ZooKeeper {
		strategy = recipes.Predecessor // other libraries do not release by handoff
	}
	return &Line{Session: ls.session, Path: path, Markers: spoken[dialect], Dialect: dialect, Strategy: strategy, Rule: Exclusive, Busy: ls.busy}, nil
}

// Busy remembers at which paths a session last had to wait, and the last number checked for
// third-party contenders. That only saves requests. So it forgets all paths when there are too
// many: a long-lived session may lock each of its paths only once. A nil Busy remembers
// nothing.
type Busy struct {
	mu     sync.Mutex
	paths  map[string]struct{}
	listed map[string]listing
}

// listing identifies the last child that was created before a listing. parent is the czxid of
// the path, whose numbers begin again when it is created again.
type listing struct {
	parent int64
	last   int32
}

func listingOf(parent session.Stat) listing {
	return listing{parent.Czxid, session.LastNumber(parent)}
}

const maxBusy = 4096

func (b *Busy) at(path string) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.paths[path]
	return ok
}

// kindAt identifies the wait queue for Busy. A contender that is third-party for a lock may not
// be for an election.
func (l *Line) kindAt() string { return gopath.Join(l.Path, l.Markers[0]) }

func (b *Busy) note(path string, busy bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !busy:
		delete(b.paths, path)
	case b.paths == nil, len(b.paths) >= maxBusy:
		b.paths = map[string]struct{}{path: {}}
	default:
		b.paths[path] = struct{}{}
	}
}

// recordable reports whether the record of a path, whose listing has these names, shows whether a
// contender has joined. It does not show changes below the directories of Curator's semaphore.
func recordable(names []string) bool { return !slices.Contains(names, CuratorLeases) }

// clean records that a listing, with these names and this record of the path, had no
// third-party contender.
func (b *Busy) clean(line string, names []string, parent session.Stat) {
	if b == nil || !recordable(names) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listed == nil || len(b.listed) >= maxBusy {
		b.listed = make(map[string]listing)
	}
	b.listed[line] = listingOf(parent)
}

// lastClean returns the last listing without a third-party contender, if it is remembered.
func (b *Busy) lastClean(line string) (last listing, ok bool) {
	if b == nil {
		return last, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	last, ok = b.listed[line]
	return last, ok
}

// Parent is the result of reading a path at which contenders wait.
type Parent struct {
	Path  string
	Data  []byte   // if requested
	Names []string // of its children

	Missing bool // the path does not exist
}

// ReadParent lists the path's children, and reads its data if withData is set. It reads the
// data before it lists the children, in the order in which a priority lock claims. A missing
// path has no children.
func ReadParent(ctx context.Context, s *session.Session, path string, withData bool) (Parent, error) {
	p := Parent{Path: path}
	var err error
	if withData {
		var node session.Node
		node, err = s.Get(ctx, path)
		p.Data = node.Data
	}
	if err == nil {
		p.Names, err = s.Children(ctx, path)
	}
	if errors.Is(err, recipes.ErrNoNode) {
		return Parent{Path: path, Missing: true}, nil
	}
	return p, err
}

// Reader reads the contenders of one kind, in one dialect.
type Reader struct {
	Data   bool   // the reader needs the data of the path
	Spoken Spoken // the markers of the recipe's contenders at the path
	Read   func(context.Context, *session.Session, Parent, recipes.Dialect) ([]recipes.Contender, error)
}

// At reads the contenders at path.
func (r Reader) At(ctx context.Context, s *session.Session, path string, dialect recipes.Dialect) ([]recipes.Contender, error) {
	p, err := ReadParent(ctx, s, path, r.Data)
	if err != nil {
		return nil, err
	}
	return r.In(ctx, s, p, dialect)
}

// In reads the contenders among a parent's children.
func (r Reader) In(ctx context.Context, s *session.Session, p Parent, dialect recipes.Dialect) ([]recipes.Contender, error) {
	found, err := r.Read(ctx, s, p, dialect)
	for i := range found {
		found[i].Dialect = dialect
	}
	return found, err
}

// InLine reads the contenders whose names have one of the markers, in the order of the wait
// queue. The first n of them hold.
func (p Parent) InLine(ctx context.Context, s *session.Session, kind recipes.Kind, n int, markers []string) ([]recipes.Contender, error) {
	l := &Line{Session: s, Path: p.Path, Markers: markers}
	entries, err := l.Order(ctx, p.Names)
	if err != nil {
		return nil, err
	}
	found, err := p.Contenders(ctx, s, kind, entries)
	for i := range min(n, len(found)) {
		found[i].Holds = true
	}
	return found, err
}

// Contenders reads these children, in the given order. It omits those that are deleted.
func (p Parent) Contenders(ctx context.Context, s *session.Session, kind recipes.Kind, entries []Entry) ([]recipes.Contender, error) {
	paths := make([]string, len(entries))
	for i, e := range entries {
		paths[i] = gopath.Join(p.Path, e.Name)
	}
	read, err := s.GetAll(ctx, paths)
	if err != nil {
		return nil, err
	}
	present := make([]recipes.Contender, 0, len(entries))
	for i, r := range read {
		switch {
		case r.Err == nil:
			present = append(present, entries[i].Contender(kind, paths[i], r.Value))
		case !errors.Is(r.Err, recipes.ErrNoNode):
			return nil, r.Err
		}
	}
	return present, nil
}

// Contender describes a contender whose znode was read.
func (e Entry) Contender(kind recipes.Kind, path string, node session.Node) recipes.Contender {
	c := recipes.Contender{
		Kind:      kind,
		Znode:     path,
		Sequence:  e.Sequence,
		Token:     recipes.Token(node.Stat.Czxid),
		SessionID: node.Stat.EphemeralOwner,
		Since:     time.UnixMilli(node.Stat.Ctime),
		Data:      node.Data,
	}
	if e.Bare() {
		c.Data, _ = session.BareData(node.Data)
	}
	if number, data, ok := Slot(node); ok && e.Kind == Lease {
		c.Slot, c.Data, c.Token = &number, data, recipes.Token(node.Stat.Mzxid)
	}
	return c
}
