package znode

import (
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Counted is a persistent znode whose deletions are counted (session.Deletions), as ReadCounted
// has read it. Its operations are the first ones of a transaction.
type Counted struct {
	Stat *session.Stat // nil: the znode does not exist

	session *session.Session
	path    string
	purpose Purpose
	count   session.Deletions
	below   []string // the counts below it, which are deleted with it
}

// Purpose is what a znode is read for.
type Purpose struct {
	Compare bool // the change depends on what was read
	Delete  bool
}

// ReadCounted reads a znode's record by read, which may return nil for a missing znode. If the
// znode is to be deleted and has children, the error matches recipes.ErrNotEmpty. It reads again
// after a sync like ReadSynced.
//
// The count must be older than the record. Otherwise the znode could be replaced between the
// two. So if the session does not know the count, ReadCounted reads the record again after it. It
// reads the record first too, because a change that is refused needs no count.
func ReadCounted(ctx context.Context, s *session.Session, path string, purpose Purpose, read func() (*session.Stat, error)) (Counted, error) {
	c := Counted{session: s, path: path, purpose: purpose}
	again := func() (err error) {
		c.Stat, err = ReadSynced(ctx, s, path, func() (*session.Stat, error) {
			stat, err := read()
			if err == nil && stat != nil && purpose.Delete && stat.NumChildren > 0 {
				c.below, err = countsBelow(ctx, s, path)
			}
			return stat, err
		})
		return err
	}
	var known bool
	c.count, known = s.KnownDeletions(c.dir()) // not after the record: another goroutine may read a new one
	err := again()
	if err != nil || known || c.Stat == nil || !purpose.Compare && !purpose.Delete {
		return c, err
	}
	if c.count, err = s.ReadDeletions(ctx, c.dir()); err == nil {
		err = again()
	}
	return c, err
}

func (c Counted) dir() string { return gopath.Dir(c.path) }

// countsBelow returns the children of a znode that count deletions. If it has others, the error
// also matches recipes.ErrNotEmpty.
func countsBelow(ctx context.Context, s *session.Session, path string) (counts []string, err error) {
	names, _, err := s.List(ctx, path)
	for _, name := range names {
		if session.IsDeletions(name) {
			counts = append(counts, gopath.Join(path, name))
		} else {
			err = fmt.Errorf("%w: %s has children", recipes.ErrNotEmpty, path)
		}
	}
	return counts, err
}

// Set adds a change of data. It is refused if the znode is not as it was read.
func (c Counted) Set(t *session.Txn, data []byte) {
	t.Check(c.count.Path, c.count.Version)
	t.Set(c.path, data, c.Stat.Version)
}

// Delete adds the deletion. If its purpose was to compare, it is refused if the znode is not as it was
// read.
func (c Counted) Delete(t *session.Txn) {
	count, version := recipes.AnyVersion, recipes.AnyVersion
	if c.purpose.Compare {
		count, version = c.count.Version, c.Stat.Version
	}
	t.Set(c.count.Path, nil, count)
	for _, path := range c.below {
		t.Delete(path, recipes.AnyVersion)
	}
	t.Delete(c.path, version)
}

// Done evaluates the result of a transaction that begins with Set or Delete. It returns
// ErrReadAgain if the transaction was refused because another client was faster.
func (c Counted) Done(outcome session.Outcome, err error) error {
	switch {
	case err == nil && c.purpose.Delete && len(outcome.Set) > 0:
		c.session.LearnDeletions(c.dir(), session.Deletions{Path: c.count.Path, Version: outcome.Set[0].Version})
	case GoneOrChanged(err) || RefusedOp(err) >= 0 && errors.Is(err, recipes.ErrNotEmpty):
		// A count below the znode may be new, or gone.
		if RefusedOp(err) == 0 {
			c.session.ForgetDeletions(c.dir())
		}
		return ErrReadAgain
	}
	return err
}
