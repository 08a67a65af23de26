package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	gopath "path"
	"slices"
	"strconv"
	"strings"
	"sync"

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

// CreateBare creates a bare znode below dir. If dir is missing, create creates it:
// EnsureQueuePath or Ensure. If count is set, parent is the record of dir after the creation: see
// Siblings. That costs one read of dir, which is sent together with the creation and sets a watch:
// see bareZnodes. The record is zero if it is unknown. The watch remains until dir changes or the
// connection ends, so each persistent dir keeps one.
//
// On error no znode remains: see CreateProtected.
func (s *Session) CreateBare(ctx context.Context, dir, name string, data []byte, count bool, create func(context.Context, string) error) (bare BareZnode, parent Stat, err error) {
	if err := s.fits(dir, data, packetSlack); err != nil {
		return BareZnode{}, Stat{}, err
	}
	created, err := s.reserve(ctx, gopath.Join(dir, name), false)
	if err != nil {
		return BareZnode{}, Stat{}, err
	}
	c := &bareCreation{name: name, header: barePrefix + uuid.NewString() + "-", count: count, begun: s.wire.LastZxid()}
	request := conn.Create2(s.full(gopath.Join(dir, name)), append([]byte(c.header), data...), conn.Ephemeral|conn.Sequence, s.bareACL)
	c.creation = creation[createdBare]{
		exchange: exchange{session: s, requests: []conn.Request{request.Identified()}, prepare: c.join}, path: gopath.Join(dir, name), parent: create,
		settle: c.end, unusable: impossible, made: c.created, find: c.search,
	}
	// The first exchange is usually answered. Then no goroutine is needed to continue after the
	// caller has returned.
	c.send(ctx)
	if replies, err := c.await(ctx); err == nil && replies[0].Err() == nil {
		c.end(true)
		created()
		made, err := c.created(replies)
		return made.BareZnode, made.parent, err
	}
	made, err := Detached(ctx, s, "create below "+dir,
		func(life context.Context) (createdBare, error) { return c.finish(ctx, life) },
		func(life context.Context, made createdBare) { s.deleteBare(life, made.BareZnode) }, created)
	return made.BareZnode, made.parent, err
}

type createdBare struct {
	BareZnode
	parent Stat // zero if unknown
}

// impossible reports whether the error of a creation is ErrNoBareZnode, or a cause of it.
func impossible(err error) bool {
	return errors.Is(err, recipes.ErrNodeExists) || errors.Is(err, conn.InvalidACL) || errors.Is(err, conn.Unimplemented) || errors.Is(err, ErrNoBareZnode)
}

type bareCreation struct {
	creation[createdBare]
	name      string
	header    string
	count     bool
	parentKey watchKey // of watch
	watch     *Watch   // on the parent; nil if this exchange does not read it
	arms      bool     // this exchange sets watch
	begun     int64    // the zxid of the last transaction seen before anything was sent
}

// CreatesBare reports whether the session can create bare znodes. It is true until a server has
// shown the opposite.
func (s *Session) CreatesBare() bool { return s.wire.CreatesBare() }

// join joins the watch on the parent. It fails if bare znodes are known to be impossible.
func (c *bareCreation) join(ctx context.Context) (err error) {
	if !c.session.wire.CreatesBare() {
		return ErrNoBareZnode
	}
	if c.count {
		c.parentKey = watchKey{path: c.session.full(gopath.Dir(c.path))}
		if c.watch, c.arms, err = c.session.watches.join(ctx, c.parentKey); err != nil {
			return err
		}
		c.requests = append(c.requests[:1], conn.Exists(c.parentKey.path, c.arms))
	}
	return nil
}

// end ends the attempt to set the watch, after an exchange. answered reports whether the replies
// have arrived.
func (c *bareCreation) end(answered bool) {
	if c.arms {
		c.session.watches.settle(c.parentKey, c.watch, answered)
		c.arms = false
	}
}

func (c *bareCreation) created(replies []conn.Reply) (createdBare, error) {
	path, stat, err := replies[0].Created()
	if err != nil {
		return createdBare{}, err
	}
	made := createdBare{BareZnode: BareZnode{Path: c.session.local(path), Stat: stat}}
	var watch *Watch
	if len(replies) > 1 {
		if parent, err := replies[1].Stat(); err == nil {
			if parent.Czxid < stat.Czxid {
				watch = c.watch
			}
			made.parent = parent
		}
	}
	c.session.bare.made(made.BareZnode, c.parentKey, watch)
	return made, nil
}

// Siblings returns the number of other children that the parent of a bare znode has, from a
// record of the parent that was read after the creation. The result is negative if the record
// does not determine it: if it is zero, or the parent has one child, and a child was created or deleted
// since. That child may be another contender.
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

// search searches for a bare znode when the reply to its creation was lost. The name does not
// show which client created a znode. So search reads the znodes whose names consist of c.name and
// a number, the latest first, and stops at one that is older than the first attempt to create it.
// Exhausted numbers do not show which znode is later, so search reads all znodes that have one.
// Those are few, because contenders then use other names.
func (c *bareCreation) search(ctx context.Context) (*createdBare, error) {
	s := c.session
	names, err := c.present(ctx)
	if err != nil {
		return nil, err
	}
	for _, candidate := range latestFirst(names, c.name) {
		path := gopath.Join(gopath.Dir(c.path), candidate.name)
		node, err := s.GetOwn(ctx, path)
		switch {
		case errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrAccessDenied):
			continue
		case err != nil:
			return nil, err
		case node.Stat.Czxid <= c.begun && !candidate.exhausted():
			return nil, nil
		case strings.HasPrefix(string(node.Data), c.header):
			found := &createdBare{BareZnode: BareZnode{path, node.Stat}}
			err := s.owns(path, node.Stat)
			if err == nil {
				s.bare.made(found.BareZnode, watchKey{}, nil)
			}
			return found, err
		}
	}
	return nil, nil
}

// numbered is a name that ends in a sequence number.
type numbered struct {
	name   string
	number int32
}

// exhausted mirrors line.Entry.Exhausted.
func (n numbered) exhausted() bool { return n.number == math.MaxInt32 || n.number < 0 }

// latestFirst returns the names that consist of name and a number, the latest first. Numbers
// wrap, so they are compared as line.Before compares them.
func latestFirst(names []string, name string) []numbered {
	var found []numbered
	for _, n := range names {
		digits, ok := strings.CutPrefix(n, name)
		if !ok {
			continue
		}
		if number, err := strconv.ParseInt(digits, 10, 32); err == nil {
			found = append(found, numbered{n, int32(number)})
		}
	}
	slices.SortFunc(found, func(a, b numbered) int { return int(b.number - a.number) })
	return found
}

// bareZnodes holds the session's bare znodes that are not known to be deleted, by path. A name
// can be used again, and the session may write to each bare znode that has it. Suppose that the
// wait queue was deleted and the name now belongs to a waiter. If the session released its old
// hold by that name, the waiter's successor would accept that as the waiter's release. byPath
// shows whether the name belongs to a later bare znode of this session. A watch shows whether it
// belongs to another session's.
type bareZnodes struct {
	mu     sync.Mutex
	byPath map[string]ownBare
}

type ownBare struct {
	czxid int64
	// The watch on the znode, or on its parent since before the znode was created; or nil. As
	// long as the watch has not fired, no other znode has the name.
	key   watchKey
	watch *Watch
}

// made adds a znode, with its watch or nil.
func (p *bareZnodes) made(bare BareZnode, key watchKey, watch *Watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath == nil {
		p.byPath = make(map[string]ownBare)
	}
	p.byPath[bare.Path] = ownBare{bare.Stat.Czxid, key, watch}
}

// watched records the watch that fires if the znode is deleted.
func (p *bareZnodes) watched(bare BareZnode, key watchKey, watch *Watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath[bare.Path].czxid == bare.Stat.Czxid {
		p.byPath[bare.Path] = ownBare{bare.Stat.Czxid, key, watch}
	}
}

// deletionWatched reports whether the server of the current connection has a watch that would
// have fired if the znode had been deleted.
func (s *Session) deletionWatched(bare BareZnode) bool {
	s.bare.mu.Lock()
	own := s.bare.byPath[bare.Path]
	s.bare.mu.Unlock()
	return own.czxid == bare.Stat.Czxid && own.watch != nil && s.watches.armed(own.key, own.watch)
}

// latest reports whether no later bare znode of this session has the same name.
func (p *bareZnodes) latest(bare BareZnode) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byPath[bare.Path].czxid == bare.Stat.Czxid
}

func (p *bareZnodes) forget(bare BareZnode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath[bare.Path].czxid == bare.Stat.Czxid {
		delete(p.byPath, bare.Path)
	}
}

// deleted forgets the znode if err, the result of its deletion, means that it does not exist.
// Otherwise the caller may delete it again.
func (p *bareZnodes) deleted(bare BareZnode, err error) error {
	if err == nil || IsGone(err) {
		p.forget(bare)
	}
	return err
}

// ForgetBare forgets a bare znode that is known to be deleted. Each bare znode ends with
// ForgetBare, DeleteBare or Handoff.
func (s *Session) ForgetBare(bare BareZnode) { s.bare.forget(bare) }

// DeleteBare deletes a bare znode without a handoff, with the guarantees of DeleteOwned. It
// first checks that the znode exists: another one may have its name and the same version.
func (s *Session) DeleteBare(bare BareZnode) <-chan error {
	if !s.bare.latest(bare) {
		return superseded(bare)
	}
	return s.inBackground(func(life context.Context) error { return s.deleteBare(life, bare) })
}

// superseded returns the result for a bare znode whose name a later one has.
func superseded(bare BareZnode) <-chan error {
	done := make(chan error, 1)
	done <- fmt.Errorf("delete %s: %w: a later bare znode has its name", bare.Path, recipes.ErrNoNode)
	return done
}

func (s *Session) deleteBare(life context.Context, bare BareZnode) error {
	return s.bare.deleted(bare, s.deleteVersion(life, bare.Path, func(bool) (Stat, error) {
		return s.reread(life, bare.Path, bare.Stat)
	}))
}
