package line

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Markers of contenders. Read in the sources of Curator 5.4.0 and kazoo 2.8.0.
const (
	// Lock ends the fixed part of the name in Curator's InterProcessMutex and
	// LeaderSelector and in go-zookeeper's Lock as here.
	Lock = "lock-"
	// Candidate, Read and Write are the texts'.
	Candidate = "n_"
	Read      = "read-"
	Write     = "write-"
	// Lease is of Curator's InterProcessSemaphoreV2 as here.
	Lease = "lease-"

	CuratorRead  = "__READ__"
	CuratorWrite = "__WRIT__"
	CuratorLatch = "latch-"

	// KazooLock is of kazoo's Lock, WriteLock and Election.
	KazooLock = "__lock__"
	KazooRead = "__rlock__"

	// CuratorLeases and CuratorLocks are the directories of InterProcessSemaphoreV2
	// below its path.
	CuratorLeases = "leases"
	CuratorLocks  = "locks"
)

// known is whose contenders have a marker.
type known struct {
	marker  string
	dialect recipes.Dialect
	recipe  string // its library's word
}

// knowns has the markers of all dialects. Those that Curator and the texts share are
// here for the text's.
var knowns = []known{
	{Lock, recipes.ZooKeeper, "Lock"},
	{Candidate, recipes.ZooKeeper, "Election"},
	{Read, recipes.ZooKeeper, "SharedLock"},
	{Write, recipes.ZooKeeper, "SharedLock"},
	{Lease, recipes.ZooKeeper, "Semaphore"},
	{CuratorRead, recipes.Curator, "InterProcessReadWriteLock"},
	{CuratorWrite, recipes.Curator, "InterProcessReadWriteLock"},
	{CuratorLatch, recipes.Curator, "LeaderLatch"},
	{KazooLock, recipes.Kazoo, "Lock"},
	{KazooRead, recipes.Kazoo, "ReadLock"},
}

// foreign returns an error if one of the names is that of a contender that does not
// look for this line's, or that this line does not look for.
//
// It is called after the contender's own znode was made. So of two contenders of
// which both look, at least the later one sees the other. Other libraries do not
// look: one that comes when this line's contender is granted takes what it finds.
//
// The recipes of this library do not exclude each other at one path, and say so, in
// the text's dialect. A line in another dialect shares its path with nothing else.
func (l *Line) foreign(ctx context.Context, names []string) error {
	for _, name := range names {
		if k, ok := l.stranger(name); ok {
			return &recipes.ForeignError{Dialect: k.dialect, Recipe: k.recipe, Znode: gopath.Join(l.Path, name)}
		}
	}
	if l.semaphore() && slices.Contains(names, CuratorLeases) && slices.Contains(names, CuratorLocks) {
		return l.foreignLease(ctx)
	}
	return nil
}

// MeetsForeign lists the line, and fails as a contender does that meets a foreign one.
func (l *Line) MeetsForeign(ctx context.Context) error {
	names, err := l.Names(ctx)
	if err != nil {
		return err
	}
	return l.foreign(ctx, names)
}

// semaphore reports whether the contenders are those of a semaphore in the default
// dialect. In the others they stand in a line of locks.
func (l *Line) semaphore() bool { return slices.Equal(l.Markers, []string{Lease}) }

// foreignLease returns an error if a lease is taken from Curator's semaphore of the same
// path. Its directories remain when nobody uses it any more.
func (l *Line) foreignLease(ctx context.Context) error {
	dir := gopath.Join(l.Path, CuratorLeases)
	names, err := l.Session.Children(ctx, dir)
	if errors.Is(err, recipes.ErrNoNode) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return &recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessSemaphoreV2", Znode: gopath.Join(dir, names[0])}
}

func (l *Line) stranger(name string) (known, bool) {
	if slices.ContainsFunc(l.Markers, func(marker string) bool { return is(name, marker) }) {
		return known{}, false
	}
	if l.semaphore() && GUID(name) {
		return known{dialect: recipes.Kazoo, recipe: "Semaphore"}, true
	}
	for _, k := range knowns {
		if l.speaks(recipes.ZooKeeper) && k.dialect == recipes.ZooKeeper {
			continue
		}
		if is(name, k.marker) {
			return k, true
		}
	}
	return known{}, false
}

func (l *Line) speaks(d recipes.Dialect) bool {
	return l.Dialect == d || l.Dialect == "" && d == recipes.DefaultDialect
}

func is(name, marker string) bool {
	_, ok := parse(name, marker)
	return ok
}

// Foreign is foreign for a recipe that does not stand in a Line.
func Foreign(ctx context.Context, path string, names []string) error {
	return (&Line{Path: path}).foreign(ctx, names)
}

// GUID reports whether a name is what kazoo calls a member that has no number: a GUID
// in hexadecimal, without hyphens.
func GUID(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// Stores reports, as an ErrInvalid, data that the dialect cannot store.
func (l *Line) Stores(data []byte) error {
	if l.Dialect == recipes.Kazoo && !utf8.Valid(data) {
		return fmt.Errorf("%w: the data are not UTF-8, on which kazoo's contenders() fails", recipes.ErrInvalid)
	}
	return nil
}

// Parent makes a parent of contenders. kazoo's make theirs as one that stays, and then
// rely on it: a container, which goes as soon as it is empty, has them fail.
func (l *Line) Parent(ctx context.Context, path string) error {
	if l.Dialect == recipes.Kazoo {
		return l.Session.Provide(ctx, path)
	}
	return l.Session.Ensure(ctx, path)
}

// Has reports whether path is that of a contender of the line, by its name.
func (l *Line) Has(path string) bool {
	return gopath.Dir(path) == l.Path && len(Parse([]string{gopath.Base(path)}, l.Markers...)) == 1
}

// Numbered reports whether a name ends with a sequence number behind a hyphen.
func Numbered(name string) bool {
	at := strings.LastIndexByte(name, '-')
	return at >= 0 && is(name, name[:at+1])
}
