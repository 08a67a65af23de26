package session

import (
	"context"
	"errors"
	gopath "path"
	"strings"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// BareZnode is an ephemeral sequential znode whose name is only the requested name and its
// number. So other contenders can compute the names of their predecessors. Only its session may
// write to it: see identity.
//
// Its name is not unique: if the parent is deleted and created again, the numbers begin again.
// So each operation must compare the czxid, which no two znodes share.
type BareZnode struct {
	Path string
	Stat Stat
}

// barePrefix starts the data of a bare znode, before a GUID and a hyphen. The GUID finds the
// znode after the reply to its creation was lost. The prefix shows other contenders that it is
// a bare znode.
const barePrefix = "_p_"

const bareHeader = len(barePrefix) + 36 + 1 // the prefix, a GUID and a hyphen

// BareData returns the data that the creator of a bare znode passed, and whether data are those
// of a bare znode.
func BareData(data []byte) ([]byte, bool) {
	if len(data) < bareHeader || !strings.HasPrefix(string(data[:bareHeader]), barePrefix) || data[bareHeader-1] != '-' {
		return data, false
	}
	return data[bareHeader:], true
}

// ErrNoBareZnode means that a bare znode cannot be created, so the caller must use
// CreateProtected. Either the session has no identity, or the server refuses the identity or
// does not support create2 (before ZooKeeper 3.5). Or the numbers are exhausted, and every
// creation gets the same number.
var ErrNoBareZnode = errors.New("cannot create a znode named by number alone")

// CreateBare creates a bare znode below dir. If dir is missing, parent creates it:
// EnsureQueuePath or Ensure. If count is set, siblings is the number of other children that dir
// had after the creation. That costs one read of dir, which is sent together with the creation
// and sets a watch: see bareZnodes. siblings is negative if the number is unknown.
//
// On error no znode remains, in the sense of CreateProtected.
func (s *Session) CreateBare(ctx context.Context, dir, name string, data []byte, count bool, parent func(context.Context, string) error) (bare BareZnode, siblings int, err error) {
	if err := s.fits(dir, data, packetSlack); err != nil {
		return BareZnode{}, 0, err
	}
	c := &bareCreation{
		exchange: exchange{session: s}, dir: dir, name: name, parent: parent,
		header: barePrefix + uuid.NewString() + "-", count: count, begun: s.wire.LastZxid(),
	}
	c.requests = []conn.Request{conn.Create2(s.full(gopath.Join(dir, name)), append([]byte(c.header), data...), conn.Ephemeral|conn.Sequence, s.bareACL)}
	// The first exchange is usually answered. Then no goroutine is needed to continue after the
	// caller has returned.
	c.begin(ctx)
	if replies, err := c.await(ctx); err == nil && replies[0].Err() == nil {
		c.end(true)
		return c.created(replies)
	}
	type created struct {
		bare     BareZnode
		siblings int
	}
	made, err := detached(ctx, s, "create below "+dir,
		func(life context.Context) (created, error) {
			bare, siblings, err := c.finish(ctx, life)
			return created{bare, siblings}, err
		},
		func(life context.Context, c created) {
			s.deleteBare(life, c.bare)
		}, nil)
	return made.bare, made.siblings, err
}

// bareCreation is a creation of a bare znode in progress.
type bareCreation struct {
	exchange
	dir, name string
	parent    func(context.Context, string) error // creates dir
	header    string
	count     bool
	parentKey watchKey // of watch
	watch     *Watch   // on dir; nil if this exchange does not read dir
	arms      bool     // this exchange sets watch
	since     int      // the number of lost connections when watch was joined
	begun     int64    // the zxid of the last transaction seen before anything was sent
}

// CreatesBare reports whether the session can create bare znodes. It is true until a server has
// shown the opposite.
func (s *Session) CreatesBare() bool { return s.wire.CreatesBare() }

// begin sends the creation, unless bare znodes are known to be impossible.
func (c *bareCreation) begin(ctx context.Context) {
	if !c.session.wire.CreatesBare() {
		c.failed = ErrNoBareZnode
		return
	}
	if c.count {
		c.parentKey = watchKey{path: c.session.full(c.dir)}
		c.watch, c.arms, c.since = c.session.watches.join(c.parentKey, 0)
		c.requests = append(c.requests[:1], conn.Exists(c.parentKey.path, c.arms))
	}
	c.exchange.begin(ctx)
}

// end settles the watch after an exchange.
func (c *bareCreation) end(answered bool) {
	if c.arms {
		c.session.watches.settle(c.parentKey, c.watch, answered, c.since)
		c.arms = false
	}
}

func (c *bareCreation) created(replies []conn.Reply) (BareZnode, int, error) {
	path, stat, err := replies[0].Created()
	if err != nil {
		return BareZnode{}, 0, err
	}
	bare := BareZnode{Path: c.session.local(path), Stat: stat}
	c.session.bare.made(bare)
	if len(replies) == 1 {
		return bare, -1, nil
	}
	parent, err := replies[1].Stat()
	if err != nil {
		return bare, -1, nil
	}
	if parent.Czxid < bare.Stat.Czxid {
		c.session.bare.watched(bare, c.parentKey, c.watch)
	}
	return bare, Siblings(parent, bare.Stat), nil
}

// finish awaits the exchange that begin has sent, and repeats the creation after a failure. It
// does not return before the outcome is known, unless life is done. It sends no new creation
// once ctx is done.
func (c *bareCreation) finish(ctx, life context.Context) (BareZnode, int, error) {
	s := c.session
	for ; ; c.begin(ctx) {
		replies, err := c.await(life)
		c.end(err == nil)
		if err == nil {
			err = replies[0].Err()
		}
		switch {
		case err == nil:
			return c.created(replies)
		case errors.Is(err, recipes.ErrNoNode):
			if err := c.parent(ctx, c.dir); err != nil {
				return BareZnode{}, 0, err
			}
		case errors.Is(err, recipes.ErrNodeExists), errors.Is(err, conn.InvalidACL), errors.Is(err, conn.Unimplemented), errors.Is(err, ErrNoBareZnode):
			return BareZnode{}, 0, ErrNoBareZnode
		case conn.Lost(err):
			bare, err := RetryThrottled(life, s, func() (BareZnode, error) { return c.find(life) })
			if bare.Path != "" || err != nil {
				return bare, -1, err
			}
			// The creation has not happened, or another client has deleted the znode.
		case life.Err() != nil:
			return BareZnode{}, 0, s.Err()
		case ctx.Err() != nil, s.Err() != nil:
			return BareZnode{}, 0, err
		default:
			return BareZnode{}, 0, answer("create", gopath.Join(c.dir, c.name), err)
		}
		if ctx.Err() != nil {
			return BareZnode{}, 0, ctx.Err()
		}
	}
}

// Siblings returns the number of other children that the parent of a bare znode has, from a
// record of the parent that was read after the creation. The result is negative if the record
// does not determine it: if the parent has one child, and a child was created or deleted since,
// the child may be another contender.
func Siblings(parent, bare Stat) int {
	if parent.NumChildren == 1 && parent.Pzxid != bare.Czxid {
		return -1
	}
	return int(parent.NumChildren) - 1
}

// LastNumber computes, from a parent's record, the number of its last created child. In
// ZooKeeper's record, Cversion is twice the number of creations minus the number of children.
func LastNumber(parent Stat) int32 {
	return int32((uint32(parent.Cversion)+uint32(parent.NumChildren))/2) - 1
}
