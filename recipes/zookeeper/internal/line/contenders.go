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

// parallelReads limits the reads that one call of ReadContenders has under way.
const parallelReads = 16

// Parent is what was read of the path at which contenders stand.
type Parent struct {
	Path  string
	Data  []byte   // if it was asked for
	Names []string // of its children

	Missing bool // it does not exist
}

// ReadParent reads the path, and its data if withData. The data is read before the
// children are listed, as a claim of a priority lock does. A path that does not
// exist has no children.
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

// Reader reads the contenders of one kind in one dialect.
type Reader struct {
	Data   bool   // it needs the data of the path
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

// InLine reads the contenders among a parent's children whose names have one of
// the markers, in the order of the line. The first n hold.
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

// Contenders reads these children, in their order. It leaves out those that do not
// exist any more.
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

// Contender is what the contract tells of a contender whose znode was read.
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
