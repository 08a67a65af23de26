package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	gopath "path"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/session"
)

// Line is the line at a path. It holds no state; all methods may be called from
// several goroutines.
type Line struct {
	Session  *session.Session
	Path     string
	Marker   string // what comes before the sequence number: "lock-", "n_"
	Strategy recipes.Strategy
	Rule     Rule
}

// Request is what a contender wants of the line.
type Request struct {
	Data   []byte
	Try    bool                // give up, with ErrContended, instead of waiting
	Joined func(recipes.Place) // called once when the place is known; may be nil
}

// Enter joins the line and waits until it is granted. On an error the contender
// has left the line, or leaves it in the background where that has to wait for
// the connection or would delay a cancellation.
func (l *Line) Enter(ctx context.Context, r Request) (*Grant, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := l.Session.CreateProtected(ctx, l.Path, l.Marker, r.Data)
	if err != nil {
		return nil, err
	}
	grant, err := l.wait(ctx, gopath.Base(path), r)
	if err == nil {
		return grant, nil
	}
	left := l.Session.Delete(path)
	if errors.Is(err, recipes.ErrContended) {
		// Somebody who tried in vain has left the line when he is told so.
		select {
		case <-left:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; leaving the line: %w", err, ctx.Err())
		}
	}
	return nil, err
}

// wait waits until the contender of that name is granted.
func (l *Line) wait(ctx context.Context, name string, r Request) (*Grant, error) {
	for {
		disconnected, err := l.Session.Connected(ctx)
		if err != nil {
			return nil, err
		}
		me, blockers, position, err := l.look(ctx, name)
		if err != nil {
			return nil, err
		}
		joined := func() {
			if r.Joined != nil {
				r.Joined(recipes.Place{Znode: gopath.Join(l.Path, name), Position: position})
				r.Joined = nil
			}
		}
		if len(blockers) == 0 {
			joined()
			return l.grant(ctx, me)
		}
		if r.Try {
			joined()
			return nil, fmt.Errorf("%w: %s", recipes.ErrContended, gopath.Join(l.Path, blockers[0].Name))
		}
		target := watched(l.Strategy, blockers)
		_, watch, err := l.Session.GetW(ctx, gopath.Join(l.Path, target.Name))
		if errors.Is(err, recipes.ErrNoNode) {
			continue // it left between the listing and the look
		}
		if err != nil {
			return nil, err
		}
		joined()
		select {
		case <-watch.Fired():
		case <-disconnected:
		case <-l.Session.Lost():
			return nil, l.Session.Err()
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", l.Path, ctx.Err())
		}
	}
}

// look lists the line and finds the contender's place in it.
func (l *Line) look(ctx context.Context, name string) (me Entry, blockers []Entry, position int, err error) {
	entries, err := l.Entries(ctx)
	if err != nil {
		return Entry{}, nil, 0, err
	}
	position = slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if position < 0 {
		return Entry{}, nil, 0, fmt.Errorf("waiting in line: %w: %s", recipes.ErrRemoved, gopath.Join(l.Path, name))
	}
	me = entries[position]
	return me, l.Rule(entries[:position], me), position, nil
}

// Entries returns who stands in line, in order. A path that does not exist is
// an empty line.
func (l *Line) Entries(ctx context.Context) ([]Entry, error) {
	names, err := l.Session.Children(ctx, l.Path)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := Parse(names, l.Marker)
	Sort(entries)
	return entries, l.breakTies(ctx, entries)
}

// breakTies puts contenders with the same sequence number in the order in which
// their znodes were created. Numbers of one parent differ, except that ZooKeeper
// (3.8.0 among others) does not wrap after 2147483647: it gives that number to
// everybody from then on, until the parent is removed and numbering starts
// again. A GUID must not decide then: a newcomer could go before the holder.
//
// A contender that has left meanwhile keeps its place at the end of its tie,
// where a look at it will find it gone.
func (l *Line) breakTies(ctx context.Context, entries []Entry) error {
	for start := 0; start < len(entries); {
		end := start + 1
		for end < len(entries) && entries[end].Sequence == entries[start].Sequence {
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

// grant reads the own node, after the listing that showed nobody ahead: it may
// have been deleted, or belong to a session that the server is about to remove.
func (l *Line) grant(ctx context.Context, me Entry) (*Grant, error) {
	path := gopath.Join(l.Path, me.Name)
	stat, err := l.Session.Stat(ctx, path)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, fmt.Errorf("first in line: %w: %s", recipes.ErrRemoved, path)
	}
	if err != nil {
		return nil, err
	}
	if stat.EphemeralOwner != l.Session.ID() {
		return nil, fmt.Errorf("first in line: %w: %s belongs to session %#x", recipes.ErrRemoved, path, stat.EphemeralOwner)
	}
	if err := l.Session.Err(); err != nil {
		return nil, err
	}
	return newGrant(l.Session, path, recipes.Token(stat.Czxid)), nil
}

// Stands reports whether any of a parent's children is a contender.
func (l *Line) Stands(names []string) bool { return len(Parse(names, l.Marker)) > 0 }
