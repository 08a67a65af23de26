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

// Place is an ephemeral sequential znode whose name is what was asked for and the
// number, and nothing else, so that others know the names of its predecessors. It
// is its session's alone to write: see identity.
//
// Its name does not protect it: it comes back if the parent is removed and made
// again, because numbering starts again then. So whatever is done to it, the
// czxid has to be looked at: no two znodes have the same.
type Place struct {
	Path string
	Stat Stat
}

// placePrefix starts the data of a place, before a GUID and a hyphen. By the
// GUID the place is found again when the reply to its creation was lost, and by
// the prefix others know it for a place.
const placePrefix = "_p_"

const placeHeader = len(placePrefix) + 36 + 1 // and a GUID and a hyphen

// PlaceData returns what the creator of a place gave it for data, and whether it
// is a place that has that data.
func PlaceData(data []byte) ([]byte, bool) {
	if len(data) < placeHeader || !strings.HasPrefix(string(data[:placeHeader]), placePrefix) || data[placeHeader-1] != '-' {
		return data, false
	}
	return data[placeHeader:], true
}

// ErrNoPlace says that a place cannot be had, so that the caller has to do with
// CreateProtected. The session has no identity, or the server does not take it, or does not
// know create2 (before ZooKeeper 3.5), or gives the same number to all because
// numbers have come to an end.
var ErrNoPlace = errors.New("no place by number alone can be had")

// CreatePlace creates a place below dir. Missing parents are created, as by
// CreateProtected. If look is set, siblings is the number of other children that
// dir had then; that costs one read, sent together with the creation. It is
// negative if it is not known. The read watches dir: see places.
//
// On an error nothing remains of it, on the terms of CreateProtected.
func (s *Session) CreatePlace(ctx context.Context, dir, name string, data []byte, look bool) (place Place, siblings int, err error) {
	return s.CreatePlaceIn(ctx, dir, name, data, look, s.EnsureLine)
}

// CreatePlaceIn is CreatePlace, with parent to make dir where it is missing: EnsureLine,
// or Ensure.
func (s *Session) CreatePlaceIn(ctx context.Context, dir, name string, data []byte, look bool, parent func(context.Context, string) error) (place Place, siblings int, err error) {
	if err := s.fits(dir, data); err != nil {
		return Place{}, 0, err
	}
	c := s.placeCreation(dir, name, data, look)
	c.parent = parent
	// Mostly the first attempt is answered, and nothing has to go on without
	// the caller.
	c.begin(ctx)
	if replies, err := c.await(ctx); err == nil && replies[0].Err() == nil {
		c.end(true)
		return c.created(replies)
	}
	type created struct {
		place    Place
		siblings int
	}
	made, err := detached(ctx, s, "create below "+dir,
		func(life context.Context) (created, error) {
			place, siblings, err := c.finish(ctx, life)
			return created{place, siblings}, err
		},
		func(life context.Context, c created) {
			s.deletePlace(life, c.place)
		}, nil)
	return made.place, made.siblings, err
}

// placeCreation is the creation of a place under way.
type placeCreation struct {
	attempt
	dir, name string
	parent    func(context.Context, string) error // makes dir
	header    string
	look      bool
	watch     *Watch // of dir; nil if this attempt does not look
	arms      bool   // it
	since     int    // connections that were lost before
	begun     int64  // the last transaction seen before anything was sent
}

func (s *Session) placeCreation(dir, name string, data []byte, look bool) *placeCreation {
	c := &placeCreation{attempt: attempt{session: s}, dir: dir, name: name, header: placePrefix + uuid.NewString() + "-", look: look, begun: s.wire.LastZxid()}
	c.requests = []conn.Request{conn.Create2(s.full(gopath.Join(dir, name)), append([]byte(c.header), data...), conn.Ephemeral|conn.Sequence, s.identity.acl(s.acl))}
	return c
}

// TakesPlaces reports whether servers can be asked for a place, as far as is known.
func (s *Session) TakesPlaces() bool { return s.Identified() && s.wire.Creates2() }

// begin sends an attempt, unless it is known that there are no places.
func (c *placeCreation) begin(ctx context.Context) {
	if !c.session.TakesPlaces() {
		c.failed = ErrNoPlace
		return
	}
	if c.look {
		c.watch, c.arms, c.since = c.session.watches.join(c.dirKey())
		c.requests = append(c.requests[:1], conn.Exists(c.session.full(c.dir), c.arms))
	}
	c.attempt.begin(ctx)
}

func (c *placeCreation) dirKey() watchKey { return watchKey{path: c.session.full(c.dir)} }

// end ends the attempt that has begun, for the watch.
func (c *placeCreation) end(answered bool) {
	if c.arms {
		c.session.watches.settle(c.dirKey(), c.watch, answered, c.since)
		c.arms = false
	}
}

func (c *placeCreation) created(replies []conn.Reply) (Place, int, error) {
	path, stat, err := replies[0].Created()
	if err != nil {
		return Place{}, 0, err
	}
	place := Place{Path: c.session.local(path), Stat: stat}
	c.session.places.made(place)
	if len(replies) == 1 {
		return place, -1, nil
	}
	parent, err := replies[1].Stat()
	if err != nil {
		return place, -1, nil
	}
	if parent.Czxid < place.Stat.Czxid {
		c.session.places.watched(place, c.dirKey(), c.watch)
	}
	return place, Siblings(parent, place.Stat), nil
}

// finish awaits the attempt that has begun. It does not return before the
// outcome is known, except when life has ended, and sends nothing new when ctx
// has.
func (c *placeCreation) finish(ctx, life context.Context) (Place, int, error) {
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
				return Place{}, 0, err
			}
		case errors.Is(err, recipes.ErrNodeExists), errors.Is(err, conn.InvalidACL), errors.Is(err, ErrNoPlace):
			return Place{}, 0, ErrNoPlace
		case conn.Lost(err):
			place, err := Insist(life, s, func() (Place, error) { return c.find(life) })
			if place.Path != "" || err != nil {
				return place, -1, err
			}
			// Known not to have happened.
		case life.Err() != nil:
			return Place{}, 0, s.Err()
		case ctx.Err() != nil, s.Err() != nil:
			return Place{}, 0, err
		default:
			return Place{}, 0, answer("create", gopath.Join(c.dir, c.name), err)
		}
		if ctx.Err() != nil {
			return Place{}, 0, ctx.Err()
		}
	}
}

// Siblings is how many other children a parent has beside a place. The record of the
// parent was read after the place was created. It is negative if the record does not
// tell. An only child is the place itself only if nothing has come or
// gone since the place came. Otherwise it may be another one.
func Siblings(parent, place Stat) int {
	if parent.NumChildren == 1 && parent.Pzxid != place.Czxid {
		return -1
	}
	return int(parent.NumChildren) - 1
}

// LastNumber is the number of the child that was created last, by a record of the
// parent. ZooKeeper tells twice the number of creations less the number of children.
func LastNumber(parent Stat) int32 {
	return int32((uint32(parent.Cversion)+uint32(parent.NumChildren))/2) - 1
}
