package line

import (
	"cmp"
	"context"
	"errors"
	"math"
	gopath "path"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Entries returns the contenders in order. A missing path has none.
func (l *Line) Entries(ctx context.Context) ([]Entry, error) {
	names, err := l.Names(ctx)
	if err != nil {
		return nil, err
	}
	return l.Order(ctx, names)
}

// Names returns the names of the path's children. A missing path has none.
func (l *Line) Names(ctx context.Context) ([]string, error) {
	names, err := l.Session.Children(ctx, l.Path)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// Order returns the contenders among the names of the path's children, in order.
func (l *Line) Order(ctx context.Context, names []string) ([]Entry, error) {
	entries := Parse(names, l.Markers...)
	Sort(entries)
	return entries, l.breakTies(ctx, entries)
}

// breakTies sorts contenders whose numbers do not show which came first, by the creation of
// their znodes. That happens when the parent has no more numbers, until it is deleted and
// created again. Neither numbers nor GUIDs may decide then, because a new contender could get
// ahead of the holder.
//
// A contender that has just left is sorted last in its tie. A read of its znode will not find
// it.
func (l *Line) breakTies(ctx context.Context, entries []Entry) error {
	for start := 0; start < len(entries); {
		end := start + 1
		for end < len(entries) && (entries[end].Sequence == entries[start].Sequence || entries[start].Exhausted() && entries[end].Exhausted()) {
			end++
		}
		if err := l.byCreation(ctx, entries[start:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

func (l *Line) byCreation(ctx context.Context, tied []Entry) error {
	if len(tied) < 2 {
		return nil
	}
	created := make(map[string]int64, len(tied))
	for _, e := range tied {
		stat, err := l.Session.Stat(ctx, gopath.Join(l.Path, e.Name))
		switch {
		case err == nil:
			created[e.Name] = stat.Czxid
		case errors.Is(err, recipes.ErrNoNode):
			created[e.Name] = math.MaxInt64
		default:
			return err
		}
	}
	slices.SortStableFunc(tied, func(a, b Entry) int { return cmp.Compare(created[a.Name], created[b.Name]) })
	return nil
}

// HasContender reports whether any of a parent's children is a contender.
func (l *Line) HasContender(names []string) bool { return len(Parse(names, l.Markers...)) > 0 }
