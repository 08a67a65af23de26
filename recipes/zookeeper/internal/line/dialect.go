package line

import (
	"context"
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
	// Priority is of a priority lock, whose names have a form of their own: PriorityName.
	Priority = "priority"

	CuratorRead  = "__READ__"
	CuratorWrite = "__WRIT__"
	CuratorLatch = "latch-"

	// KazooLock is of kazoo's Lock, WriteLock and Election.
	KazooLock = "__lock__"
	KazooRead = "__rlock__"
	// KazooLease is of kazoo's Semaphore, whose names are GUIDs.
	KazooLease = "guid"

	// CuratorLeases and CuratorLocks are the directories of InterProcessSemaphoreV2
	// below its path. The first is its marker there.
	CuratorLeases = "leases"
	CuratorLocks  = "locks"
)

// semaphore reports whether the contenders are those of a semaphore in the default
// dialect. In the others they stand in a line of locks.
func (l *Line) semaphore() bool { return slices.Equal(l.Markers, []string{Lease}) }

func is(name, marker string) bool {
	_, ok := parse(name, marker)
	return ok
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
