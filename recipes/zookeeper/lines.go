package zookeeper

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// markers tell the kind of a contender from its znode's name. Those of a priority
// lock are told by parseSpot.
var markers = map[recipes.Kind][]string{
	recipes.KindLock:       {lockMarker},
	recipes.KindSharedLock: sharedMarkers,
	recipes.KindSemaphore:  {leaseMarker},
	recipes.KindElection:   {candidateMarker},
}

// Contenders returns the contenders of the given kinds at path, or of all.
func (s zkSession) Contenders(ctx context.Context, path string, kinds ...recipes.Kind) (recipes.Lines, error) {
	if err := errors.Join(recipes.ValidatePath(path), recipes.ValidateKinds(kinds...)); err != nil {
		return recipes.Lines{}, err
	}
	if len(kinds) == 0 {
		kinds = recipes.Kinds()
	}
	lines, err := readLines(ctx, s.Session, path, kinds...)
	if err != nil {
		return recipes.Lines{}, fmt.Errorf("contenders at %s: %w", path, err)
	}
	return lines, nil
}

// readLine returns the contenders of one kind at path.
func readLine(ctx context.Context, s *session.Session, path string, kind recipes.Kind) ([]recipes.Contender, error) {
	lines, err := readLines(ctx, s, path, kind)
	return lines.Contenders, err
}

// readLines returns the contenders of the given kinds at path. A path that does not
// exist has none. The path's data, which only some kinds need, is read before the
// children are listed, as a priority lock's claim does.
func readLines(ctx context.Context, s *session.Session, path string, kinds ...recipes.Kind) (lines recipes.Lines, err error) {
	var node session.Node
	if slices.Contains(kinds, recipes.KindPriorityLock) || slices.Contains(kinds, recipes.KindSemaphore) {
		node, err = s.Get(ctx, path)
	}
	var names []string
	if err == nil {
		names, err = s.Children(ctx, path)
	}
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return recipes.Lines{}, nil
	case err != nil:
		return recipes.Lines{}, err
	}
	permits := parsePermits(node.Data)
	if slices.Contains(kinds, recipes.KindSemaphore) {
		lines.Permits = permits
	}
	for _, kind := range recipes.Kinds() {
		if !slices.Contains(kinds, kind) {
			continue
		}
		var found []recipes.Contender
		if kind == recipes.KindPriorityLock {
			heir, _ := parseHeir(node.Data)
			found, err = readPriority(ctx, s, path, names, heir)
		} else {
			l := &line.Line{Session: s, Path: path, Markers: markers[kind]}
			found, err = readInLine(ctx, l, kind, names, permits)
		}
		if err != nil {
			return recipes.Lines{}, err
		}
		lines.Contenders = append(lines.Contenders, found...)
	}
	return lines, nil
}

// readInLine reads the contenders among the names of the line's children. The first
// of them hold, as many as there are permits; of a shared lock also the readers that
// have no writer ahead.
func readInLine(ctx context.Context, l *line.Line, kind recipes.Kind, names []string, permits int) ([]recipes.Contender, error) {
	entries, err := l.Order(ctx, names)
	if err != nil {
		return nil, err
	}
	found, err := readContenders(ctx, l.Session, l.Path, kind, entries)
	if err != nil {
		return nil, err
	}
	if kind != recipes.KindSemaphore {
		permits = 1
	}
	writer := false
	for i := range found {
		c := &found[i]
		c.Holds = i < permits || c.Mode == recipes.Reading && !writer
		writer = writer || c.Mode == recipes.Writing
	}
	return found, nil
}

// readPriority reads the contenders of a priority lock among the names of its
// path's children.
func readPriority(ctx context.Context, s *session.Session, path string, names []string, heir string) ([]recipes.Contender, error) {
	ranked := rankedSpots(names, heir)
	entries := make([]line.Entry, len(ranked))
	for i, s := range ranked {
		entries[i] = line.Entry{Name: s.name, Sequence: s.sequence}
	}
	found, err := readContenders(ctx, s, path, recipes.KindPriorityLock, entries)
	if err != nil {
		return nil, err
	}
	for i := range found {
		c := &found[i]
		s, _ := parseSpot(gopath.Base(c.Znode))
		c.Mode, c.Priority, c.Holds = s.mode, s.priority, s.holds
		c.Successor = !s.holds && s.name == heir
		if !c.Holds {
			c.Token = 0
		}
	}
	return found, nil
}
