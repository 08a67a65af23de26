package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	gopath "path"
	"regexp"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/barrier"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/config"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/election"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/group"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lock"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/queue"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/rwlock"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/twophase"
)

// Open opens a ZooKeeper session. It is a recipes.Opener.
func Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	return Dialer(nil).Open(ctx, cfg)
}

// A Dialer connects to servers, for proxies and tests. A nil Dialer uses the network.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Open is [Open] with connections of this Dialer.
func (d Dialer) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	s, err := session.Open(ctx, cfg, session.DialFunc(d))
	if err != nil {
		return nil, err
	}
	return withRecipes(s), nil
}

// Resume resumes a session that another process has served, and its places and holds in
// ZooKeeper. It is for plugins: give it to them as plugin.Resume.
//
// ticket is the ticket that the other process gave for the session. It is a secret. contact
// is a time at which ZooKeeper's leader is known to have received a request of the session.
// The other process must have ended, or must have detached the session: ZooKeeper does not
// prevent two processes from serving one session.
//
// If the session has ended, the error matches recipes.ErrSessionLost. If it is one of ClickHouse
// Keeper, the error matches recipes.ErrUnsupported. On any error, nothing was deleted, and no session
// was opened or closed.
func Resume(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, contact time.Time) (recipes.Client, error) {
	return Dialer(nil).Resume(ctx, cfg, ticket, contact)
}

// Resume is [Resume] with connections of this Dialer.
func (d Dialer) Resume(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, contact time.Time) (recipes.Client, error) {
	t, err := session.ParseTicket(ticket, contact)
	if err != nil {
		return nil, fmt.Errorf("resume session: %w", err)
	}
	s, err := session.Resume(ctx, cfg, session.DialFunc(d), t)
	if err != nil {
		return nil, err
	}
	return withRecipes(s), nil
}

// internal/rpc/server calls ResumeTicket, Detach and DropRest to move a session. A session of
// ClickHouse Keeper has no ticket: detached, it would be lost.
func (s zkSession) ResumeTicket() []byte {
	if s.Session.Continues() != nil {
		return nil
	}
	return s.Session.Ticket().Bytes()
}

func (s zkSession) Detach(ctx context.Context) error {
	if err := s.Session.Continues(); err != nil {
		return fmt.Errorf("detach session: %w", err)
	}
	_, err := s.Session.LetGo(ctx)
	return err
}

// DropRest does not delete the ephemeral elements of queues (recipes.QueueConfig): they
// belong to no hold or waiter.
func (s zkSession) DropRest(ctx context.Context) error {
	return s.Session.DropRest(ctx, queue.IsElement)
}

func withRecipes(s *session.Session) recipes.Client {
	lines := line.Of(s)
	return zkSession{
		Session:        s,
		Locks:          lock.Locks{Lines: lines},
		ReadWriteLocks: rwlock.ReadWriteLocks{Lines: lines},
		Elections:      election.Elections{Lines: lines},
		Queues:         queue.Of(s),
		Barriers:       barrier.Barriers{Session: s},
		Groups:         group.Groups{Session: s},
		Configurations: config.Configurations{Session: s},
		Transactions:   twophase.Transactions{Session: s},
	}
}

// zkSession has the recipes of all families. A family has a method for each of its recipes.
type zkSession struct {
	*session.Session
	lock.Locks
	rwlock.ReadWriteLocks
	election.Elections
	*queue.Queues
	barrier.Barriers
	group.Groups
	config.Configurations
	twophase.Transactions
}

func (s zkSession) Stats(context.Context) (recipes.Stats, error) {
	return s.Session.Counters(), nil
}

func (s zkSession) Shares(path string, n int, cfg recipes.SharesConfig) (recipes.Shares, error) {
	return recipes.NewShares(s, path, n, cfg)
}

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

// Children implements recipes.Recipes.
func (s zkSession) Children(ctx context.Context, path string) ([]string, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	names, err := s.Session.Children(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("children of %s: %w", path, err)
	}
	slices.Sort(names)
	return names, nil
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
	seen := p.Sighted()
	for _, kind := range allKinds {
		verdicts, err := seen.Verdicts(ctx, s.Session, kind, readers[kind].Spoken)
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
	contender := make(map[string]bool, len(known))
	for _, c := range known {
		contender[c.Znode] = true
	}
	var others []string
	for _, name := range names {
		if znode := gopath.Join(path, name); !contender[znode] && numbered.MatchString(name) && !helper.MatchString(name) {
			others = append(others, znode)
		}
	}
	read, err := s.Session.StatAll(ctx, others)
	count := 0
	for _, r := range read {
		switch {
		case r.Err == nil && r.Value.EphemeralOwner != 0:
			count++
		case r.Err != nil && !errors.Is(r.Err, recipes.ErrNoNode): // that contender has left since the listing
			return 0, r.Err
		}
	}
	return count, err
}
