package barrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// In the compatibility modes, ready has no data. A member that counts enough members
// creates it, and every member that waits enters when it is created. This was read in the
// source of kazoo 2.8.0 and in the classes of Curator 5.4.0. Both count ready as a member.
// So if a ready znode was left behind, both let members in too early: Curator at once, and
// kazoo with one member too few.
//
//   - Our members do not count ready. They enter if ready is younger than their own znode,
//     or if they count enough members themselves. So no member of ours enters by an old
//     ready.
//   - Our members create ready as an ephemeral znode, so a member that dies leaves none
//     behind. A member that was counted, but has not read ready by then, waits for the
//     next round.
//   - Our members create no znode during a round, that is, while there are both ready and
//     a member. They delete a ready znode without members.
//   - Our members leave when all members of their round are gone. A member of the same
//     name with a younger znode is of the next round.

func (b *doubleBarrier) compatible() bool { return b.line.Dialect != recipes.ZooKeeper }

// memberOf returns the dialect in which a name is a member's, or "". Curator names a member
// by a GUID, and kazoo by a GUID without hyphens.
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

// foreign returns an error if a name is a third-party member's. The members of Curator and
// kazoo count every child of the path, and enter without being counted by ours.
func (b *doubleBarrier) foreign(names []string) error {
	for _, name := range names {
		if d := memberOf(name); d != "" && d != b.line.Dialect {
			return b.Session.Refuse(b.Path(), recipes.ForeignError{Dialect: d, Recipe: recipeOf[d], Znode: b.Child(name)})
		}
	}
	return nil
}

// own returns the members of the barrier among the names, in the order of the libraries.
func (b *doubleBarrier) own(names []string) []string {
	members := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return memberOf(name) != b.line.Dialect })
	slices.Sort(members)
	return members
}

// nameOf returns the name of the member with a GUID, or the beginning of the name.
func (b *doubleBarrier) nameOf(guid uuid.UUID) string {
	switch b.line.Dialect {
	case recipes.Curator:
		return guid.String()
	case recipes.Kazoo:
		return strings.ReplaceAll(guid.String(), "-", "")
	}
	return session.ProtectedPrefix(guid)
}

func (b *doubleBarrier) readyPath() string { return b.Child(readyName) }

// vacant waits until the current round has ended, and deletes a ready znode without
// members. A member that joined while others leave would be taken for one of them.
func (b *doubleBarrier) vacant(ctx context.Context) error {
	return znode.Await(ctx, b.Session, "waiting for the round before to end", func() ([]<-chan struct{}, error) {
		names, err := b.line.Names(ctx)
		if err == nil {
			err = b.foreign(names)
		}
		if err != nil || !slices.Contains(names, readyName) {
			return nil, err
		}
		members := b.own(names)
		if len(members) == 0 {
			return nil, cmp.Or(b.deleteReady(ctx), znode.ErrReadAgain)
		}
		_, changed, err := b.Session.GetW(ctx, b.readyPath())
		if err != nil {
			return nil, znode.Listed(err)
		}
		_, gone, err := b.Session.DeletionW(ctx, b.Child(members[0]))
		if err != nil {
			return nil, znode.Listed(err)
		}
		return znode.Events(changed, gone), nil
	})
}

// deleteReady deletes ready, which may not exist. Repeating the deletion after a lost
// connection is harmless: the watches of the members that wait have already fired for any
// ready that it deletes.
func (b *doubleBarrier) deleteReady(ctx context.Context) error {
	err := b.Session.DeleteOnce(ctx, b.readyPath(), recipes.AnyVersion)
	if errors.Is(err, recipes.ErrNoNode) || znode.TryAgain(ctx, b.Session, err) {
		return nil // the caller lists again
	}
	return znode.GivenUp(ctx, b.Session, "delete ready", err)
}

// round is the members that entered together, and the last transaction that created or
// deleted a child of the path while they were present. A znode that was created later is
// of another round.
type round struct {
	members []string
	zxid    int64
}

func (b *doubleBarrier) round(ctx context.Context) (round, error) {
	names, stat, err := b.Session.List(ctx, b.Path())
	if errors.Is(err, recipes.ErrNoNode) {
		err = fmt.Errorf("%w: all members of %s", recipes.ErrRemoved, b.Path())
	}
	if err == nil {
		err = b.foreign(names)
	}
	if err != nil {
		return round{}, err
	}
	return round{b.own(names), stat.Pzxid}, nil
}

// waitForReady waits until the member may enter, and returns its round.
//
// The event that ready was created is enough. The first member of kazoo that leaves
// deletes ready, so it may be gone before it can be read.
func (b *doubleBarrier) waitForReady(ctx context.Context, o *znode.Ephemeral) (now round, err error) {
	var changed *session.Watch
	err = znode.Await(ctx, b.Session, fmt.Sprintf("waiting for %d members", b.size), func() ([]<-chan struct{}, error) {
		if err := o.Err(); err != nil {
			return nil, err
		}
		if changed != nil && session.Happened(changed.Fired()) && changed.Created() {
			now, err = b.round(ctx)
			return nil, err
		}
		var exists, entered bool
		if exists, changed, err = b.Session.ExistsW(ctx, b.readyPath()); err != nil {
			return nil, err
		}
		if now, entered, err = b.count(ctx, o, exists); err != nil || entered {
			return nil, err
		}
		return append(znode.Events(changed), o.Done()), nil
	})
	return now, err
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
	stat, err := b.Session.Stat(ctx, b.readyPath())
	if errors.Is(err, recipes.ErrNoNode) {
		return round{}, false, nil // the watch has fired
	}
	return now, stat.Czxid > int64(o.Token()), err
}

// createReady creates ready. Another member may have created it first, and a member that
// leaves may have deleted it already.
func (b *doubleBarrier) createReady(ctx context.Context) error {
	_, err := b.Session.CreateNamed(ctx, b.readyPath(), nil)
	if errors.Is(err, recipes.ErrNodeExists) || errors.Is(err, recipes.ErrRemoved) {
		return nil
	}
	return err
}
