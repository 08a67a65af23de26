package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Kinds of contenders. Each recipe has a line of its own at a path, and does not
// see the others; an operator who looks at the path wants to.
const (
	kindLock      = "lock"
	kindSemaphore = "semaphore"
	kindElection  = "election"
	kindRead      = string(recipes.Reading) // of a shared lock, as the next
	kindWrite     = string(recipes.Writing)
	priorityKinds = "priority-" // and read or write
)

// standing is one contender as the tool shows it.
type standing struct {
	recipes.Contender
	kind      string
	holds     bool
	revocable bool
	revoked   bool          // it was asked to give way
	grace     time.Duration // how long it may be forced after
	priority  priority      // of a priority lock
	heir      bool          // it is named to be the next there
}

func lockLine(ctx context.Context, s recipes.Session, path string) ([]standing, error) {
	l, err := s.Lock(path, recipes.LockConfig{})
	if err != nil {
		return nil, err
	}
	contenders, err := l.Contenders(ctx)
	return first(1, kindLock, contenders), err
}

func electionLine(ctx context.Context, s recipes.Session, path string) ([]standing, error) {
	e, err := s.Election(path, recipes.ElectionConfig{})
	if err != nil {
		return nil, err
	}
	candidates, err := e.Candidates(ctx)
	return first(1, kindElection, candidates), err
}

// semaphoreLine is the line of a semaphore and the number of its permits, 0 if
// none has been agreed on.
func semaphoreLine(ctx context.Context, s recipes.Session, path string) (line []standing, permits int, err error) {
	sem, err := s.Semaphore(path, recipes.SemaphoreConfig{Permits: 1}) // which looking does not need
	if err != nil {
		return nil, 0, err
	}
	contenders, err := sem.Contenders(ctx)
	if err != nil {
		return nil, 0, err
	}
	permits, err = agreed(ctx, s, path)
	return first(permits, kindSemaphore, contenders), permits, err
}

// agreed reads the number of permits where the semaphore's contract says that it
// is: in the data of the path's znode.
func agreed(ctx context.Context, s recipes.Session, path string) (int, error) {
	if path == "/" {
		return 0, nil
	}
	c, err := s.Configuration(path)
	if err != nil {
		return 0, err
	}
	node, err := c.Get(ctx, "")
	if errors.Is(err, recipes.ErrNoNode) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	number, ok := strings.CutPrefix(string(node.Value), "permits=")
	if permits, err := strconv.Atoi(number); ok && err == nil && permits > 0 {
		return permits, nil
	}
	return 0, nil
}

// first is a line of which the first n hold.
func first(n int, kind string, contenders []recipes.Contender) []standing {
	line := make([]standing, len(contenders))
	for i, c := range contenders {
		line[i] = standing{Contender: c, kind: kind, holds: i < n}
	}
	return line
}

// sharedLine is the line of a shared lock: a writer holds if nobody is ahead, a
// reader if no writer is.
func sharedLine(ctx context.Context, s recipes.Session, path string) ([]standing, error) {
	l, err := s.SharedLock(path, recipes.SharedLockConfig{})
	if err != nil {
		return nil, err
	}
	contenders, err := l.Contenders(ctx)
	line := make([]standing, len(contenders))
	writer := false
	for i, c := range contenders {
		line[i] = standing{
			Contender: c.Contender, kind: string(c.Mode), revocable: c.Revocable, revoked: c.Revoked, grace: c.Grace,
			holds: !writer && (c.Mode == recipes.Reading || i == 0),
		}
		writer = writer || c.Mode == recipes.Writing
	}
	return line, err
}

// priorityLine is the line of a priority lock: who holds, and who waits by
// priority. Where the path holds data of another recipe nobody can stand in it.
func priorityLine(ctx context.Context, s recipes.Session, path string) ([]standing, error) {
	l, err := s.PriorityLock(path, recipes.PriorityLockConfig{})
	if err != nil {
		return nil, err
	}
	contenders, err := l.Contenders(ctx)
	if errors.Is(err, recipes.ErrMismatch) {
		return nil, nil
	}
	line := make([]standing, len(contenders))
	for i, c := range contenders {
		line[i] = standing{
			Contender: c.Contender, kind: priorityKinds + string(c.Mode), revocable: c.Revocable, revoked: c.Revoked, grace: c.Grace,
			holds: c.Holds, priority: priority{true, c.Priority}, heir: c.Heir,
		}
		if !c.Holds {
			line[i].Token = 0 // it gets one with the grant
		}
	}
	return line, err
}
