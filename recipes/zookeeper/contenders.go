package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/election"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lock"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/rwlock"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// readers read the contenders of one kind among the children of a path.
var readers = map[recipes.Kind]func(context.Context, *session.Session, line.Parent) ([]recipes.Contender, error){
	recipes.KindLock:         lock.Contenders,
	recipes.KindSharedLock:   rwlock.SharedContenders,
	recipes.KindPriorityLock: rwlock.PriorityContenders,
	recipes.KindSemaphore:    lock.SemaphoreContenders,
	recipes.KindElection:     election.Candidates,
}

// Contenders implements recipes.Session. It lists the path once for all kinds, and
// reads its data only for the kinds that need them.
func (s zkSession) Contenders(ctx context.Context, path string, kinds ...recipes.Kind) (recipes.Lines, error) {
	if err := errors.Join(recipes.ValidatePath(path), recipes.ValidateKinds(kinds...)); err != nil {
		return recipes.Lines{}, err
	}
	if len(kinds) == 0 {
		kinds = recipes.Kinds()
	}
	lines, err := s.contenders(ctx, path, kinds)
	if err != nil {
		return recipes.Lines{}, fmt.Errorf("contenders at %s: %w", path, err)
	}
	return lines, nil
}

func (s zkSession) contenders(ctx context.Context, path string, kinds []recipes.Kind) (lines recipes.Lines, err error) {
	semaphores := slices.Contains(kinds, recipes.KindSemaphore)
	p, err := line.ReadParent(ctx, s.Session, path, semaphores || slices.Contains(kinds, recipes.KindPriorityLock))
	if err != nil {
		return recipes.Lines{}, err
	}
	if semaphores {
		lines.Permits = lock.Permits(p.Data)
	}
	for _, kind := range recipes.Kinds() {
		if !slices.Contains(kinds, kind) {
			continue
		}
		found, err := readers[kind](ctx, s.Session, p)
		if err != nil {
			return recipes.Lines{}, err
		}
		lines.Contenders = append(lines.Contenders, found...)
	}
	return lines, nil
}
