package line

import (
	"context"
	"errors"
	gopath "path"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"golang.org/x/sync/errgroup"
)

// parallelReads limits how many reads one call of ReadContenders sends at the same time.
const parallelReads = 16

// Parent is the result of reading a path at which contenders wait.
type Parent struct {
	Path  string
	Data  []byte   // if requested
	Names []string // of its children

	Missing bool // it does not exist
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
	found := make([]recipes.Contender, len(entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for i, e := range entries {
		g.Go(func() error {
			path := gopath.Join(p.Path, e.Name)
			node, err := s.Get(ctx, path)
			if errors.Is(err, recipes.ErrNoNode) {
				return nil
			}
			if err != nil {
				return err
			}
			found[i] = e.Contender(kind, path, node)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	present := found[:0]
	for _, c := range found {
		if c.Znode != "" {
			present = append(present, c)
		}
	}
	return present, nil
}

// Contender describes a contender whose znode was read.
func (e Entry) Contender(kind recipes.Kind, path string, node session.Node) recipes.Contender {
	data := node.Data
	if e.Bare() {
		data, _ = session.BareData(data)
	}
	return recipes.Contender{
		Kind:      kind,
		Znode:     path,
		Sequence:  e.Sequence,
		Token:     recipes.Token(node.Stat.Czxid),
		SessionID: node.Stat.EphemeralOwner,
		Since:     time.UnixMilli(node.Stat.Ctime),
		Data:      data,
	}
}
