package line

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// peer is a recipe, of this or another library, whose contenders have znodes at a path.
type peer struct {
	marker  string // see Line.Markers
	dialect recipes.Dialect
	recipe  string            // its name in its library
	names   func(string) bool // reports whether a child is a contender; nil: its name ends with the marker and a number
}

// peers lists all recipes whose contenders may share a path. A contender waits only for
// contenders with a marker of its own wait queue. No name belongs to two peers. From the
// sources of Curator 5.4.0, kazoo 2.8.0, go-zookeeper 1.0.4 and ZooKeeper 3.8.0.
var peers = []peer{
	{marker: Lock, dialect: recipes.ZooKeeper, recipe: "Lock"}, // Curator's InterProcessMutex and LeaderSelector, go-zookeeper's Lock
	{marker: Candidate, dialect: recipes.ZooKeeper, recipe: "Election"},
	{marker: Read, dialect: recipes.ZooKeeper, recipe: "SharedLock"},
	{marker: Write, dialect: recipes.ZooKeeper, recipe: "SharedLock"},
	{marker: Priority, dialect: recipes.ZooKeeper, recipe: "PriorityLock", names: PriorityName.MatchString},
	{marker: Lease, dialect: recipes.ZooKeeper, recipe: "Semaphore"},
	{marker: "x-", dialect: recipes.ZooKeeper, recipe: "WriteLock", names: contribName.MatchString},

	{marker: CuratorRead, dialect: recipes.Curator, recipe: "InterProcessReadWriteLock"},
	{marker: CuratorWrite, dialect: recipes.Curator, recipe: "InterProcessReadWriteLock"},
	{marker: CuratorLatch, dialect: recipes.Curator, recipe: "LeaderLatch"},
	{marker: CuratorLeases, dialect: recipes.Curator, recipe: "InterProcessSemaphoreV2", names: func(name string) bool { return name == CuratorLeases }},

	{marker: KazooLock, dialect: recipes.Kazoo, recipe: "Lock"},
	{marker: KazooRead, dialect: recipes.Kazoo, recipe: "ReadLock"},
	{marker: KazooLease, dialect: recipes.Kazoo, recipe: "Semaphore", names: GUID},
}

var (
	// PriorityName is the form of a priority lock's names: prefix, mode, priority, number.
	PriorityName = regexp.MustCompile(`^(.*-|)(read|write|reading|writing)-([0-9]{2})-([0-9]{10}|-[0-9]{9,10})$`)
	// contribName is the form of ZooKeeper's own lock, in Java and in C: x-<session>-<number>.
	contribName = regexp.MustCompile(`^x-(-?[0-9]+|[0-9a-f]{16})-[0-9]{10}$`)
)

func (p *peer) named(name string) bool {
	if p.names != nil {
		return p.names(name)
	}
	return is(name, p.marker)
}

// foundPeer is a child of a path whose name is that of a peer's contender.
type foundPeer struct {
	*peer
	name string
}

// findPeers returns one child of each peer, except the peers with these markers.
func findPeers(names, except []string) (seen []foundPeer) {
	for _, name := range names {
		if slices.ContainsFunc(except, func(marker string) bool { return is(name, marker) }) {
			continue
		}
		at := slices.IndexFunc(peers, func(p peer) bool { return p.named(name) })
		if at < 0 || slices.Contains(except, peers[at].marker) {
			continue
		}
		if p := &peers[at]; !slices.ContainsFunc(seen, func(s foundPeer) bool { return s.peer == p }) {
			seen = append(seen, foundPeer{p, name})
		}
	}
	return seen
}

// Foreign returns an error if one of the names is that of a third-party contender.
//
// It is called after the contender's own znode was created. So of two contenders that both
// check, at least the later one finds the other. Other libraries do not check: their contender
// may hold while ours does.
//
// It sends no request, unless a child has a name that another library's semaphore uses.
func (l *Line) Foreign(ctx context.Context, names []string) error {
	met, err := l.meets(ctx, names, nil)
	if met != nil {
		return l.Session.Refuse(l.Path, *met)
	}
	return err
}

// otherLibrarys is Foreign without the contenders of this library. Those check the path after
// they have joined, and leave, so none is granted beside a hold.
//
// A GUID in the name shows the library. A contender that waits by handoff has none: its data
// show it.
func (l *Line) otherLibrarys(ctx context.Context, names []string) error {
	ours := make(map[string]bool)
	omit := func(znode string) bool { return ours[znode] || session.Ours(gopath.Base(znode)) }
	for {
		met, err := l.meets(ctx, names, omit)
		if met == nil {
			return err
		}
		node, err := l.Session.GetOwn(ctx, met.Znode)
		switch _, bare := session.BareData(node.Data); {
		case bare || errors.Is(err, recipes.ErrNoNode): // or it has left
			ours[met.Znode] = true
		case err == nil || errors.Is(err, recipes.ErrAccessDenied):
			return l.Session.Refuse(l.Path, *met)
		default:
			return err
		}
	}
}

// meets returns the first third-party contender among the names, without the znodes that omit, if
// not nil, reports.
func (l *Line) meets(ctx context.Context, names []string, omit func(znode string) bool) (*recipes.ForeignError, error) {
	if omit != nil {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return omit(gopath.Join(l.Path, name)) })
	}
	for _, s := range findPeers(names, l.Markers) {
		znode, err := l.contenderOf(ctx, s, omit)
		if err != nil {
			return nil, err
		}
		if znode != "" {
			return &recipes.ForeignError{Dialect: s.dialect, Recipe: s.recipe, Znode: znode}, nil
		}
	}
	return nil, nil
}

// Sighted returns p with one name of each recipe of which it has contenders. They are enough for
// Verdicts, and comparing a long list with each recipe is slow.
func (p Parent) Sighted() Parent {
	seen := findPeers(p.Names, nil)
	p.Names = make([]string, len(seen))
	for i, one := range seen {
		p.Names[i] = one.name
	}
	return p
}

// Verdicts returns, for each dialect of a recipe, the third-party contender that a contender of
// that recipe would find among the parent's children. spoken holds the recipe's markers at that
// path.
func (p Parent) Verdicts(ctx context.Context, s *session.Session, kind recipes.Kind, spoken Spoken) (all []recipes.Verdict, err error) {
	names := p.Sighted().Names
	for _, d := range recipes.Dialects() {
		if spoken[d] == nil {
			continue
		}
		met, err := (&Line{Session: s, Path: p.Path, Markers: spoken[d]}).meets(ctx, names, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, recipes.Verdict{Kind: kind, Dialect: d, Foreign: met})
	}
	return all, nil
}

// contenderOf returns the znode of the contender that a child shows, or "" if the name does not
// belong to a contender. omit is explained at meets.
func (l *Line) contenderOf(ctx context.Context, s foundPeer, omit func(znode string) bool) (string, error) {
	switch s.marker {
	case CuratorLeases:
		znode, err := l.ofSemaphoreV2(ctx, omit)
		if znode == "" && slices.Contains(l.Markers, KazooLease) {
			znode = gopath.Join(l.Path, s.name) // kazoo's contenders count it as a permit
		}
		return znode, err
	case KazooLease:
		if l.semaphore() {
			break // the names of its own leases are not GUIDs
		}
		// Other programs also name znodes by GUIDs, but they create no lock beside the path.
		_, lock := LeasePaths(l.Path, recipes.Kazoo)
		if _, err := l.Session.Stat(ctx, lock); errors.Is(err, recipes.ErrNoNode) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	return gopath.Join(l.Path, s.name), nil
}

// ofSemaphoreV2 returns the znode of a contender of Curator's semaphore, or "". The directories
// remain when the semaphore is unused. A contender keeps its place among the locks until it has
// a lease, so the locks are listed first.
func (l *Line) ofSemaphoreV2(ctx context.Context, omit func(znode string) bool) (string, error) {
	leases, locks := LeasePaths(l.Path, recipes.Curator)
	for _, dir := range []struct{ path, marker string }{{locks, Lock}, {leases, Lease}} {
		names, err := l.Session.Children(ctx, dir.path)
		if err != nil && !errors.Is(err, recipes.ErrNoNode) {
			return "", err
		}
		for _, found := range Parse(names, dir.marker) {
			if znode := gopath.Join(dir.path, found.Name); omit == nil || !omit(znode) {
				return znode, nil
			}
		}
	}
	return "", nil
}

// LeasePaths returns the parents of the leases of another library's semaphore at path, and of
// the contenders for the lock that orders them.
func LeasePaths(path string, d recipes.Dialect) (leases, locks string) {
	if d == recipes.Kazoo {
		return path, path + "-" + KazooLock
	}
	return gopath.Join(path, CuratorLeases), gopath.Join(path, CuratorLocks)
}

// MeetsForeign lists the path and returns Foreign's error for the listing.
func (l *Line) MeetsForeign(ctx context.Context) error {
	names, err := l.Names(ctx)
	if err != nil {
		return err
	}
	return l.Foreign(ctx, names)
}

// Inspected checks the path for contenders of other libraries while the grant is held. A
// contender of another library that joins after the grant does not check for ours, and nothing
// keeps it out. The grant then ends with ErrForeign.
//
// A contender of another recipe of this library ends no hold: see otherLibrarys. So one child is
// enough. Contenders of another library may take turns, and the next listing would show others.
func (l *Line) Inspected(h *Hold) *Hold {
	c := &check{line: l, hold: h}
	if last, ok := l.Busy.lastClean(l.kindAt()); ok {
		c.clean.Store(&last)
	}
	i := h.Session.Inspect(l.Path, c.inspect)
	h.OnEnd(func(error) { i.Stop() })
	return h
}

// check is the inspection of a hold.
type check struct {
	line    *Line
	hold    *Hold
	clean   atomic.Pointer[listing] // the last listing without a third-party contender; nil: none is known
	listing atomic.Bool
}

// inspect lists the path if a child was created since the last listing without a third-party
// contender, or if the path is missing.
func (c *check) inspect(i *session.Inspection, parent session.Stat) {
	if clean := c.clean.Load(); clean != nil && *clean == listingOf(parent) {
		return
	}
	if !c.listing.CompareAndSwap(false, true) {
		i.Again() // the listing in progress may be older
		return
	}
	if !c.hold.Session.Background(func(ctx context.Context) { c.list(ctx, i) }) {
		c.listing.Store(false)
	}
}

func (c *check) list(ctx context.Context, i *session.Inspection) {
	defer c.listing.Store(false)
	l := c.line
	names, parent, err := l.Session.List(ctx, l.Path)
	if errors.Is(err, recipes.ErrNoNode) {
		c.hold.gone() // its znode was below the path, which was listed after the grant
		return
	}
	if err == nil {
		err = l.otherLibrarys(ctx, names)
	}
	switch {
	case errors.Is(err, recipes.ErrForeign):
		c.hold.End(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
	case err == nil && recordable(names):
		clean := listingOf(parent)
		c.clean.Store(&clean)
		l.Busy.clean(l.kindAt(), names, parent)
	default:
		i.Again()
	}
}

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
