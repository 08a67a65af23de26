package zookeeper

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"regexp"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/election"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lock"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/rwlock"
)

// allKinds are in the order of recipes.Lines.
var allKinds = []recipes.Kind{recipes.KindLock, recipes.KindSharedLock, recipes.KindPriorityLock, recipes.KindSemaphore, recipes.KindElection}

// readers read the contenders of each kind.
var readers = map[recipes.Kind]line.Reader{
	recipes.KindLock:         lock.Contenders,
	recipes.KindSharedLock:   rwlock.SharedContenders,
	recipes.KindPriorityLock: rwlock.PriorityContenders,
	recipes.KindSemaphore:    lock.SemaphoreContenders,
	recipes.KindElection:     election.Candidates,
}

// Contenders implements recipes.Recipes. It lists the path once for all kinds, and
// reads its data only if one of the kinds needs it.
func (s zkSession) Contenders(ctx context.Context, path string, kinds ...recipes.Kind) (recipes.Lines, error) {
	err := recipes.ValidatePath(path)
	for _, k := range kinds {
		err = errors.Join(err, k.Validate())
	}
	if err != nil {
		return recipes.Lines{}, err
	}
	if len(kinds) == 0 {
		kinds = allKinds
	}
	lines, err := s.contenders(ctx, path, kinds)
	if err != nil {
		return recipes.Lines{}, fmt.Errorf("contenders at %s: %w", path, err)
	}
	return lines, nil
}

func (s zkSession) contenders(ctx context.Context, path string, kinds []recipes.Kind) (lines recipes.Lines, err error) {
	needsData := slices.ContainsFunc(kinds, func(k recipes.Kind) bool { return readers[k].Data })
	p, err := line.ReadParent(ctx, s.Session, path, needsData)
	if err != nil {
		return recipes.Lines{}, err
	}
	if slices.Contains(kinds, recipes.KindSemaphore) {
		lines.Permits = lock.Permits(p.Data)
	}
	for _, kind := range allKinds { // in this order, each once
		if !slices.Contains(kinds, kind) {
			continue
		}
		for _, dialect := range dialects(kind, p.Names) {
			found, err := readers[kind].In(ctx, s.Session, p, dialect)
			if err != nil {
				return recipes.Lines{}, err
			}
			lines.Contenders = append(lines.Contenders, found...)
		}
	}
	if len(kinds) < len(allKinds) {
		return lines, nil
	}
	for _, kind := range allKinds {
		verdicts, err := p.Verdicts(ctx, s.Session, kind, readers[kind].Spoken)
		if err != nil {
			return recipes.Lines{}, err
		}
		lines.Verdicts = append(lines.Verdicts, verdicts...)
	}
	lines.Unknown, err = s.unknown(ctx, path, p.Names, lines.Contenders)
	return lines, err
}

// dialects returns the dialects in which children of these names, or their children, can be
// contenders of the kind. Curator names the contenders of a lock as the text does. In kazoo,
// the writers of a shared lock have the names of locks and candidates. So a wait queue of
// kazoo is a shared lock if it contains a reader, and a lock otherwise.
func dialects(kind recipes.Kind, names []string) []recipes.Dialect {
	shared := len(line.Parse(names, line.KazooRead)) > 0
	switch {
	case kind == recipes.KindSemaphore && slices.ContainsFunc(names, line.GUID):
		return []recipes.Dialect{recipes.ZooKeeper, recipes.Kazoo}
	case kind == recipes.KindSemaphore && slices.Contains(names, line.CuratorLeases):
		return []recipes.Dialect{recipes.ZooKeeper, recipes.Curator}
	case kind == recipes.KindLock && !shared:
		return []recipes.Dialect{recipes.ZooKeeper, recipes.Kazoo}
	case kind == recipes.KindSharedLock && shared:
		return recipes.Dialects()
	case kind == recipes.KindSharedLock, kind == recipes.KindElection:
		return []recipes.Dialect{recipes.ZooKeeper, recipes.Curator}
	}
	return []recipes.Dialect{recipes.ZooKeeper}
}

// numbered matches a name that ends with a sequence number. helper matches the name of a
// znode that is not a contender's, but belongs to a recipe. A GUID names a member of a
// double barrier, in Curator with hyphens and in kazoo without. By chance it can end with
// ten digits.
var (
	numbered = regexp.MustCompile(`[0-9]{10}$`)
	helper   = regexp.MustCompile(`^(_c_.{36}-)?(member|receipt|guard|queue|qn|entry)-|^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$`)
)

// unknown counts the ephemeral sequential children of path that are not among the
// contenders.
func (s zkSession) unknown(ctx context.Context, path string, names []string, known []recipes.Contender) (int, error) {
	count := 0
	for _, name := range names {
		znode := gopath.Join(path, name)
		if !numbered.MatchString(name) || helper.MatchString(name) || slices.ContainsFunc(known, func(c recipes.Contender) bool { return c.Znode == znode }) {
			continue
		}
		stat, err := s.Session.Stat(ctx, znode)
		if errors.Is(err, recipes.ErrNoNode) {
			continue // it has left since the listing
		}
		if err != nil {
			return 0, err
		}
		if stat.EphemeralOwner != 0 {
			count++
		}
	}
	return count, nil
}
