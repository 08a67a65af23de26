package znode

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
)

// Grant is the part that line.Hold and Ephemeral have in common: a znode of the session, on which
// the application relies until the grant ends.
type Grant struct {
	Session *session.Session
	Ended   chan struct{} // closed when the grant ends

	path     string
	token    recipes.Token
	unlisten func() bool // cancels the session's OnLost; see also OnEnd
	removal  session.Removal
	removing bool // Remove has ended it; only one removal runs at a time

	mu       sync.Mutex
	reason   error          // why it has ended; nil while it is held
	deletion *session.Watch // the latest watch on the znode, or nil
}

// Begin begins the grant of the znode at path. session.BeginHold has succeeded.
func (g *Grant) Begin(s *session.Session, path string, token recipes.Token) {
	g.Session, g.path, g.token, g.Ended = s, path, token, make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unlisten = s.OnLost(g.sessionLost)
}

func (g *Grant) Token() recipes.Token { return g.token }

func (g *Grant) Znode() string { return g.path }

func (g *Grant) Err() error {
	g.sessionLost() // a goroutine also passes on the loss, and Err does not wait for it
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason
}

func (g *Grant) ValidUntil() time.Time {
	if g.Err() != nil {
		return time.Time{}
	}
	return g.Session.ProvedUntil()
}

func (g *Grant) sessionLost() {
	if err := g.Session.Err(); err != nil {
		g.End(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
	}
}

// End ends the grant with that reason and does not delete the znode. It reports whether the
// grant was held.
func (g *Grant) End(reason error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason != nil {
		return false
	}
	g.reason = reason
	close(g.Ended)
	g.unlisten()
	g.Session.EndHold()
	return true
}

// OnEnd calls f once when the grant ends, or now if it has ended. f must not use the grant. A
// grant without OnEnd pays nothing for it.
func (g *Grant) OnEnd(f func(reason error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason != nil {
		f(g.reason)
		return
	}
	unlisten := g.unlisten
	g.unlisten = func() bool { f(g.reason); return unlisten() }
}

// Watch calls gone when another client has deleted the znode. again sets a watch on the znode, or
// fails with ErrNoNode; like every wait, Watch calls it whenever the connection was lost. If watch
// is not nil, the znode is already watched, on the connection that ends with disconnected.
func (g *Grant) Watch(life context.Context, disconnected <-chan struct{}, watch *session.Watch, again func(context.Context) (*session.Watch, error), gone func()) {
	for {
		g.mu.Lock()
		g.deletion = watch
		g.mu.Unlock()
		if watch != nil {
			select {
			case <-watch.Fired():
			case <-disconnected:
			case <-g.Ended:
				return
			case <-life.Done():
				return
			}
		}
		var err error
		if disconnected, err = g.Session.Connected(life); err != nil {
			return
		}
		watch, err = again(life)
		switch {
		case g.Session.Throttled(life, err):
			watch = nil
		case errors.Is(err, recipes.ErrNoNode):
			gone()
			return
		case err != nil:
			if life.Err() == nil { // a deletion would not be noticed, so the grant is unsafe
				g.End(fmt.Errorf("%w: %w %s: %w", recipes.ErrNotHeld, session.ErrUnwatched, g.path, err))
			}
			return
		}
	}
}

func (g *Grant) deletionWatch() *session.Watch {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.deletion
}

// Remove ends the grant and runs remove, which deletes the znode: see session.Removal. lost is why
// the grant had already ended, or nil.
func (g *Grant) Remove(ctx context.Context, what string, remove func(lost error, settle func(error))) error {
	return g.removal.Run(ctx, what+" "+g.path, func(settle func(error)) {
		g.removing = g.End(recipes.ErrReleased) || g.removing
		var lost error
		if !g.removing {
			lost = g.Err()
		}
		remove(lost, settle)
	})
}

// In reports whether the grant is of that session.
func (g *Grant) In(s *session.Session) bool { return g.Session == s }

// A Guard checks a grant in a transaction.
type Guard interface {
	In(*session.Session) bool
	Err() error
	// Check adds the checks of the grant to a transaction.
	Check(context.Context, *session.Txn) error
	// Refused is called with the check that the server has refused. If it returns nil, the
	// transaction is tried again.
	Refused(context.Context, *session.TxnError) error
}

// A guardError reports that a guard other than the writer's own has failed.
type guardError struct {
	guard int
	error
}

// Commit commits a transaction of s together with the checks of guards. The first guard is the
// writer's own. The index in a *session.TxnError is the operation's index in t.
func Commit(ctx context.Context, s *session.Session, t session.Txn, guards []Guard) error {
	for {
		var guarded session.Txn
		ends := make([]int, len(guards)) // the end of each guard's checks in the transaction
		failed := func(guard int, err error) error {
			if guard > 0 {
				return guardError{guard, err}
			}
			return fmt.Errorf("guarded write: %w", err)
		}
		for i, g := range guards {
			err := g.Err()
			if err == nil {
				err = g.Check(ctx, &guarded)
			}
			if err != nil {
				return failed(i, err)
			}
			ends[i] = guarded.Len()
		}
		checks := guarded.Len()
		guarded.Append(t)
		err := s.Commit(ctx, guarded)
		var refusal *session.TxnError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refusal) && refusal.Index >= checks:
			return &session.TxnError{Index: refusal.Index - checks, Err: refusal.Err}
		case refusal != nil:
			// Nothing was written.
			i, begin := 0, 0
			for ; refusal.Index >= ends[i]; i++ {
				begin = ends[i]
			}
			if err := guards[i].Refused(ctx, &session.TxnError{Index: refusal.Index - begin, Err: refusal.Err}); err != nil {
				return failed(i, err)
			}
			continue
		case errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome):
			err = guards[0].Err()
		}
		return fmt.Errorf("guarded write: %w", err)
	}
}

// Write converts ops to a transaction, which commit sends together with its guard and others. Its
// errors are those that recipes.Grant.Write documents.
func (g *Grant) Write(ctx context.Context, ops []recipes.Op, commit func(context.Context, session.Txn, ...Guard) error) error {
	for again := false; ; again = true {
		var w write
		for i, op := range ops {
			switch err, lost := w.add(ctx, g, ops[:i+1]), g.Err(); {
			case err == nil:
			case lost != nil && !errors.Is(err, recipes.ErrInvalid):
				return fmt.Errorf("guarded write: %w", lost)
			case errors.Is(err, recipes.ErrNoNode):
				return &recipes.WriteError{Index: i, Op: op, Err: err}
			default:
				return fmt.Errorf("guarded write: operation %d: %w", i, err)
			}
		}
		err := commit(ctx, w.txn, w.others...)
		var refused *session.TxnError
		var unheld guardError
		switch {
		case errors.As(err, &unheld) && errors.Is(unheld.error, recipes.ErrNotHeld) && g.Err() == nil:
			i := w.held[unheld.guard-1]
			return &recipes.WriteError{Index: i, Op: ops[i], Err: unheld.error}
		case errors.As(err, &unheld):
			return fmt.Errorf("guarded write: %s: %w", ops[w.held[unheld.guard-1]].Path, unheld.error)
		case errors.As(err, &refused):
			i := w.written[refused.Index]
			if ops[i].Kind() == "delete key" && !again {
				g.Session.ForgetDeletions(gopath.Dir(ops[i].Path)) // the count may be outdated
				continue
			}
			return &recipes.WriteError{Index: i, Op: ops[i], Err: refused.Err}
		}
		return err
	}
}

// write is a guarded write under construction.
type write struct {
	txn           session.Txn
	others        []Guard
	written, held []int // the operations of txn, and of others
}

// add adds the last one of ops.
func (w *write) add(ctx context.Context, g *Grant, ops []recipes.Op) error {
	i := len(ops) - 1
	op := ops[i]
	if err := op.Validate(); err != nil {
		return err
	}
	switch op.Kind() {
	case "create":
		w.txn.Create(op.Path, op.Data, false)
	case "set":
		w.txn.Set(op.Path, op.Data, op.Version)
	case "delete":
		w.txn.Delete(op.Path, op.Version)
	case "delete key":
		if err := w.deleteKey(ctx, g.Session, ops); err != nil {
			return err
		}
	case "held":
		for _, grant := range op.Grants() {
			other, ok := grant.(Guard)
			if !ok || !other.In(g.Session) {
				return fmt.Errorf("%w: %s is not a grant of this session", recipes.ErrInvalid, grant.Znode())
			}
			w.others, w.held = append(w.others, other), append(w.held, i)
		}
	}
	for len(w.written) < w.txn.Len() {
		w.written = append(w.written, i)
	}
	return nil
}

// deleteKey adds a deletion that is counted. Whether the key exists, and has keys below it, is
// left to the server: an earlier operation may create or delete them.
func (w *write) deleteKey(ctx context.Context, s *session.Session, ops []recipes.Op) error {
	op := ops[len(ops)-1]
	dir := gopath.Dir(op.Path)
	count, err := session.Deletions{}, error(nil)
	if slices.ContainsFunc(ops, func(op recipes.Op) bool { return op.Kind() == "create" && op.Path == dir }) {
		// dir does not exist, so there is no earlier znode of the key.
	} else if known, ok := s.KnownDeletions(dir); ok {
		count = known
	} else if count, err = s.ReadDeletions(ctx, dir); err != nil {
		return err
	}
	below, err := countsBelow(ctx, s, op.Path)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) && !errors.Is(err, recipes.ErrNotEmpty) {
		return err
	}
	if count.Path != "" {
		w.txn.Set(count.Path, nil, recipes.AnyVersion)
	}
	for _, path := range below {
		w.txn.Delete(path, recipes.AnyVersion)
	}
	w.txn.Delete(op.Path, op.Version)
	return nil
}
