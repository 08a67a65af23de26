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

// BareZnode is an ephemeral sequential znode whose name is what was asked for and the
// number, and nothing else, so that others know the names of its predecessors. It
// is its session's alone to write: see identity.
//
// Its name does not protect it: it comes back if the parent is removed and made
// again, because numbering starts again then. So whatever is done to it, the
// czxid has to be looked at: no two znodes have the same.
type BareZnode struct {
	Path string
	Stat Stat
}

// barePrefix starts the data of a bare znode, before a GUID and a hyphen. By the
// GUID the znode is found again when the reply to its creation was lost, and by
// the prefix others know it for a bare znode.
const barePrefix = "_p_"

const bareHeader = len(barePrefix) + 36 + 1 // and a GUID and a hyphen

// BareData returns what the creator of a bare znode gave it for data, and whether it
// is a bare znode that has that data.
func BareData(data []byte) ([]byte, bool) {
	if len(data) < bareHeader || !strings.HasPrefix(string(data[:bareHeader]), barePrefix) || data[bareHeader-1] != '-' {
		return data, false
	}
	return data[bareHeader:], true
}

// ErrNoBareZnode says that a bare znode cannot be had, so that the caller has to do with
// CreateProtected. The session has no identity, or the server does not take it, or does not
// know create2 (before ZooKeeper 3.5), or gives the same number to all because
// numbers have come to an end.
var ErrNoBareZnode = errors.New("no znode named by number alone can be had")

// CreateBare creates a bare znode below dir. Missing parents are created, as by
// CreateProtected. If look is set, siblings is the number of other children that
// dir had then; that costs one read, sent together with the creation. It is
// negative if it is not known. The read watches dir: see bareZnodes.
//
// On an error nothing remains of it, on the terms of CreateProtected.
func (s *Session) CreateBare(ctx context.Context, dir, name string, data []byte, look bool) (bare BareZnode, siblings int, err error) {
	return s.CreateBareIn(ctx, dir, name, data, look, s.EnsureLine)
}

// CreateBareIn is CreateBare, with parent to make dir where it is missing: EnsureLine,
// or Ensure.
func (s *Session) CreateBareIn(ctx context.Context, dir, name string, data []byte, look bool, parent func(context.Context, string) error) (bare BareZnode, siblings int, err error) {
	if err := s.fits(dir, data); err != nil {
		return BareZnode{}, 0, err
	}
	c := s.newBareCreation(dir, name, data, look)
	c.parent = parent
	// Mostly the first exchange is answered, and nothing has to go on without
	// the caller.
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

// bareCreation is the creation of a bare znode under way.
type bareCreation struct {
	exchange
	dir, name string
	parent    func(context.Context, string) error // makes dir
	header    string
	look      bool
	watch     *Watch // of dir; nil if this exchange does not look
	arms      bool   // it
	since     int    // connections that were lost before
	begun     int64  // the last transaction seen before anything was sent
}

func (s *Session) newBareCreation(dir, name string, data []byte, look bool) *bareCreation {
	c := &bareCreation{exchange: exchange{session: s}, dir: dir, name: name, header: barePrefix + uuid.NewString() + "-", look: look, begun: s.wire.LastZxid()}
	c.requests = []conn.Request{conn.Create2(s.full(gopath.Join(dir, name)), append([]byte(c.header), data...), conn.Ephemeral|conn.Sequence, s.identity.acl(s.acl))}
	return c
}

// CreatesBare reports whether servers can be asked for a bare znode, as far as is known.
func (s *Session) CreatesBare() bool { return s.Identified() && s.wire.Creates2() }

// begin begins an exchange, unless it is known that there are no bare znodes.
func (c *bareCreation) begin(ctx context.Context) {
	if !c.session.CreatesBare() {
		c.failed = ErrNoBareZnode
		return
	}
	if c.look {
		c.watch, c.arms, c.since = c.session.watches.join(c.dirKey())
		c.requests = append(c.requests[:1], conn.Exists(c.session.full(c.dir), c.arms))
	}
	c.exchange.begin(ctx)
}

func (c *bareCreation) dirKey() watchKey { return watchKey{path: c.session.full(c.dir)} }

// end ends the exchange that has begun, for the watch.
func (c *bareCreation) end(answered bool) {
	if c.arms {
		c.session.watches.settle(c.dirKey(), c.watch, answered, c.since)
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
		c.session.bare.watched(bare, c.dirKey(), c.watch)
	}
	return bare, Siblings(parent, bare.Stat), nil
}

// finish awaits the exchange that has begun. It does not return before the
// outcome is known, except when life has ended, and sends nothing new when ctx
// has.
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
		case errors.Is(err, recipes.ErrNodeExists), errors.Is(err, conn.InvalidACL), errors.Is(err, ErrNoBareZnode):
			return BareZnode{}, 0, ErrNoBareZnode
		case conn.Lost(err):
			bare, err := Insist(life, s, func() (BareZnode, error) { return c.find(life) })
			if bare.Path != "" || err != nil {
				return bare, -1, err
			}
			// Known not to have happened.
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

// Siblings is how many other children a parent has beside a bare znode. The record of the
// parent was read after the znode was created. It is negative if the record does not
// tell. An only child is the znode itself only if nothing has come or
// gone since the znode came. Otherwise it may be another one.
func Siblings(parent, bare Stat) int {
	if parent.NumChildren == 1 && parent.Pzxid != bare.Czxid {
		return -1
	}
	return int(parent.NumChildren) - 1
}

// LastNumber is the number of the child that was created last, by a record of the
// parent. ZooKeeper tells twice the number of creations less the number of children.
func LastNumber(parent Stat) int32 {
	return int32((uint32(parent.Cversion)+uint32(parent.NumChildren))/2) - 1
}
