package line

import (
	"context"
	"fmt"
	gopath "path"
	"strings"
	"unicode/utf8"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Markers of contenders, from the sources of Curator 5.4.0 and kazoo 2.8.0.
const (
	// Lock is our marker, and that of Curator's InterProcessMutex and LeaderSelector and of
	// go-zookeeper's Lock.
	Lock = "lock-"
	// Candidate, Read and Write are the markers of ZooKeeper's recipes.
	Candidate = "n_"
	Read      = "read-"
	Write     = "write-"
	// Lease is our marker, and that of Curator's InterProcessSemaphoreV2.
	Lease = "lease-"
	// Priority is the marker of a priority lock, whose names have the form of PriorityName.
	Priority = "priority"

	CuratorRead  = "__READ__"
	CuratorWrite = "__WRIT__"
	CuratorLatch = "latch-"

	// KazooLock is the marker of kazoo's Lock, WriteLock and Election.
	KazooLock = "__lock__"
	KazooRead = "__rlock__"
	// KazooLease is the marker of kazoo's Semaphore, whose names are GUIDs.
	KazooLease = "guid"

	// CuratorLeases and CuratorLocks are the directories of InterProcessSemaphoreV2 below its
	// path. The first is also its marker there.
	CuratorLeases = "leases"
	CuratorLocks  = "locks"
)

func is(name, marker string) bool {
	_, ok := parse(name, marker)
	return ok
}

// GUID reports whether a name is a GUID as kazoo writes it: hexadecimal, without hyphens.
func GUID(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// Stores returns an ErrInvalid if the dialect cannot store data.
func (l *Line) Stores(data []byte) error {
	if l.Dialect == recipes.Kazoo && !utf8.Valid(data) {
		return fmt.Errorf("%w: the data are not UTF-8, on which kazoo's contenders() fails", recipes.ErrInvalid)
	}
	return nil
}

// Parent creates a parent of contenders. kazoo creates a persistent one and relies on it: its
// contenders fail if a container is deleted when it becomes empty.
func (l *Line) Parent(ctx context.Context, path string) error {
	if l.Dialect == recipes.Kazoo {
		return l.Session.Provide(ctx, path)
	}
	return l.Session.Ensure(ctx, path)
}

// Has reports whether path is, by its name, a contender of this wait queue.
func (l *Line) Has(path string) bool {
	return gopath.Dir(path) == l.Path && len(Parse([]string{gopath.Base(path)}, l.Markers...)) == 1
}

// Numbered reports whether a name ends with a hyphen and a sequence number.
func Numbered(name string) bool {
	at := strings.LastIndexByte(name, '-')
	return at >= 0 && is(name, name[:at+1])
}
