package barrier

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// In the dialects of Curator and kazoo ready has no data. Whoever counts enough members
// creates it, and whoever waits goes when it is created. Read in the source of kazoo
// 2.8.0 and in the classes of Curator 5.4.0. Both count ready as a member, and let
// members in where it was left behind: Curator's at once, and kazoo's one too early.
//
//   - Ours does not count ready. It enters with a ready that is younger than its own
//     znode, or when it counts enough members itself. So an old ready lets nobody of
//     ours in.
//   - The ready that ours creates is ephemeral. A member that dies leaves none behind. One
//     that was counted, and has not looked by then, waits for the next round.
//   - Ours makes no znode while a round is on: while ready and a member are there. It
//     deletes a ready without members.
//   - Ours leaves when all members of its round are gone. A member of the same name with
//     a younger znode is of the next round.

// speaks reports whether the members are those of another library.
func (b *doubleBarrier) speaks() bool { return b.line.Dialect != recipes.DefaultDialect }

// memberOf returns whose member a name is, or "". Curator's is a GUID, and kazoo's one
// without hyphens.
func memberOf(name string) recipes.Dialect {
	switch _, notGUID := uuid.Parse(name); {
	case line.GUID(name):
		return recipes.Kazoo
	case notGUID == nil && len(name) == 36:
		return recipes.Curator
	case len(line.Parse([]string{name}, znode.MemberMarker)) == 1:
		return recipes.ZooKeeper
	}
	return ""
}

var recipeOf = map[recipes.Dialect]string{
	recipes.ZooKeeper: "DoubleBarrier",
	recipes.Curator:   "DistributedDoubleBarrier",
	recipes.Kazoo:     "DoubleBarrier",
}

// foreign returns an error if a name is that of a member of another dialect. Those of
// Curator and kazoo count every child of the path, and pass without being counted.
func (b *doubleBarrier) foreign(names []string) error {
	for _, name := range names {
		if d := memberOf(name); d != "" && d != b.line.Dialect {
			return b.line.Session.Refuse(b.line.Path, recipes.ForeignError{Dialect: d, Recipe: recipeOf[d], Znode: gopath.Join(b.line.Path, name)})
		}
	}
	return nil
}

// own returns the members of the barrier among the names, in the libraries' order.
func (b *doubleBarrier) own(names []string) []string {
	members := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return memberOf(name) != b.line.Dialect })
	slices.Sort(members)
	return members
}

// newName is the name of a new member.
func (b *doubleBarrier) newName() string {
	switch b.line.Dialect {
	case recipes.Curator:
		return uuid.NewString()
	case recipes.Kazoo:
		return strings.ReplaceAll(uuid.NewString(), "-", "")
	}
	return "" // a protected one
}

func (b *doubleBarrier) readyPath() string { return gopath.Join(b.line.Path, readyName) }

// vacant waits until no round is on, and deletes a ready without members. A member that
// came while others leave would be taken for one of them.
func (b *doubleBarrier) vacant(ctx context.Context) error {
	s := b.line.Session
	for {
		disconnected, err := s.Connected(ctx)
		if err != nil {
			return err
		}
		names, err := b.line.Names(ctx)
		if err == nil {
			err = b.foreign(names)
		}
		if err != nil || !slices.Contains(names, readyName) {
			return err
		}
		members := b.own(names)
		if len(members) == 0 {
			if err := b.deleteReady(ctx); err != nil {
				return err
			}
			continue
		}
		_, changed, err := s.GetW(ctx, b.readyPath())
		if errors.Is(err, recipes.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		_, gone, err := s.DeletionW(ctx, gopath.Join(b.line.Path, members[0]))
		if errors.Is(err, recipes.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		if err := s.Wait(ctx, "waiting for the round before to end", changed.Fired(), gone.Fired(), disconnected); err != nil {
			return err
		}
	}
}

// deleteReady deletes ready, which may not exist. After a lost connection it may be sent
// again: those that wait have been told of the ready that it hits.
func (b *doubleBarrier) deleteReady(ctx context.Context) error {
	err := b.line.Session.DeleteOnce(ctx, b.readyPath(), recipes.AnyVersion)
	if errors.Is(err, recipes.ErrNoNode) || znode.TryAgain(ctx, b.line.Session, err) {
		return nil // the caller looks again
	}
	return znode.GivenUp(ctx, b.line.Session, "delete ready", err)
}

// round is who entered together, and the last transaction in which one of the path's
// children came or went while they were there. Who was created later is of another round.
type round struct {
	members []string
	zxid    int64
}

func (b *doubleBarrier) round(ctx context.Context) (round, error) {
	names, stat, err := b.line.Session.List(ctx, b.line.Path)
	if errors.Is(err, recipes.ErrNoNode) {
		err = fmt.Errorf("%w: all members of %s", recipes.ErrRemoved, b.line.Path)
	}
	if err == nil {
		err = b.foreign(names)
	}
	if err != nil {
		return round{}, err
	}
	return round{b.own(names), stat.Pzxid}, nil
}

// waitForReady waits until the member may enter, and returns the round in which it is.
//
// That ready was created is enough. The first of kazoo's members that leaves deletes it,
// so it may be gone before it is read.
func (b *doubleBarrier) waitForReady(ctx context.Context, o *znode.Ephemeral) (round, error) {
	s := b.line.Session
	for {
		disconnected, err := s.Connected(ctx)
		if err != nil {
			return round{}, err
		}
		if err := o.Err(); err != nil {
			return round{}, err
		}
		exists, changed, err := s.ExistsW(ctx, b.readyPath())
		if err != nil {
			return round{}, err
		}
		now, entered, err := b.count(ctx, o, exists)
		if err != nil || entered {
			return now, err
		}
		if err := s.Wait(ctx, fmt.Sprintf("waiting for %d members", b.size), changed.Fired(), disconnected, o.Done()); err != nil {
			return round{}, err
		}
		if session.Happened(changed.Fired()) && changed.Created() {
			return b.round(ctx)
		}
	}
}

// count counts the members, and reports whether the member enters. If there are enough,
// it creates ready.
func (b *doubleBarrier) count(ctx context.Context, o *znode.Ephemeral, readyExists bool) (now round, enters bool, err error) {
	if now, err = b.round(ctx); err != nil {
		return round{}, false, err
	}
	switch enough := slices.Contains(now.members, o.Name()) && len(now.members) >= b.size; {
	case enough && !readyExists:
		return now, true, b.createReady(ctx)
	case enough:
		return now, true, nil
	case !readyExists:
		return round{}, false, nil
	}
	stat, err := b.line.Session.Stat(ctx, b.readyPath())
	if errors.Is(err, recipes.ErrNoNode) {
		return round{}, false, nil // the watch has fired
	}
	return now, stat.Czxid > int64(o.Token()), err
}

// createReady creates ready. Another member may have been faster, and one that leaves may
// have deleted it already.
func (b *doubleBarrier) createReady(ctx context.Context) error {
	_, err := b.line.Session.CreateNamed(ctx, b.readyPath(), nil)
	if errors.Is(err, recipes.ErrNodeExists) || errors.Is(err, recipes.ErrRemoved) {
		return nil
	}
	return err
}
