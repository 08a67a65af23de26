package barrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	gopath "path"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// readyName is the znode that the last member creates in the text. Its data are the
// names of the members that may enter, one on each line.
const readyName = "ready"

type doubleBarrier struct {
	line *line.Line // of the members; no member waits by its rules
	size int
}

// NewDouble returns the double barrier at path.
func NewDouble(s *session.Session, path string, cfg recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("double barrier: %w", err)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("double barrier %s: %w", path, err)
	}
	members := &line.Line{
		Session: s, Path: path, Markers: []string{znode.MemberMarker},
		Dialect: cmp.Or(cfg.Dialect, recipes.DefaultDialect),
	}
	return &doubleBarrier{line: members, size: cfg.Size}, nil
}

func (b *doubleBarrier) Path() string { return b.line.Path }
func (b *doubleBarrier) Size() int    { return b.size }

func (b *doubleBarrier) Enter(ctx context.Context, data []byte) (recipes.Passage, error) {
	return b.EnterAnnounced(ctx, data, func(recipes.Place) {})
}

// EnterAnnounced is Enter, and tells which znode is the member's before it waits.
func (b *doubleBarrier) EnterAnnounced(ctx context.Context, data []byte, joined func(recipes.Place)) (recipes.Passage, error) {
	// Before there is a member: members of other libraries would count it.
	if err := b.mayJoin(ctx); err != nil {
		return nil, b.failed(err)
	}
	o, err := znode.CreateEphemeral(ctx, b.line.Session, b.line.Path, b.newName(), znode.MemberMarker, data, b.line.Parent)
	if err != nil {
		return nil, b.failed(err)
	}
	joined(recipes.Place{Znode: o.Znode(), Position: recipes.UnknownPosition})
	return b.await(ctx, o)
}

func (b *doubleBarrier) mayJoin(ctx context.Context) error {
	if b.speaks() {
		return b.vacant(ctx)
	}
	_, err := b.members(ctx)
	return err
}

// await waits until the member has entered. If it does not, its znode is deleted.
func (b *doubleBarrier) await(ctx context.Context, o *znode.Ephemeral) (recipes.Passage, error) {
	r := round{zxid: math.MaxInt64} // no name is used again
	var err error
	if b.speaks() {
		r, err = b.waitForReady(ctx, o)
	} else {
		r.members, err = b.wait(ctx, o)
	}
	if err != nil {
		o.End(recipes.ErrReleased)
		b.line.Session.Delete(o.Znode())
		return nil, b.failed(err)
	}
	return b.passage(o, r), nil
}

func (b *doubleBarrier) passage(o *znode.Ephemeral, r round) *passage {
	return &passage{Ephemeral: o, session: b.line.Session, barrier: b, members: r.members, round: r}
}

func (b *doubleBarrier) failed(err error) error {
	return fmt.Errorf("double barrier %s: %w", b.line.Path, err)
}

// members lists the members, in order. It fails if one is of another dialect.
func (b *doubleBarrier) members(ctx context.Context) ([]line.Entry, error) {
	names, err := b.line.Names(ctx)
	if err == nil {
		err = b.foreign(names)
	}
	if err != nil {
		return nil, err
	}
	return b.line.Order(ctx, names)
}

// wait waits until ready names the member, and returns all members that it names.
func (b *doubleBarrier) wait(ctx context.Context, o *znode.Ephemeral) ([]string, error) {
	s, me := b.line.Session, o.Name()
	woken := false // by ready, which most likely exists then
	for {
		disconnected, err := s.Connected(ctx)
		if err != nil {
			return nil, err
		}
		if err := o.Err(); err != nil {
			return nil, err
		}
		if woken {
			// Read without a watch: a member that has entered does not want to be
			// woken when ready is deleted.
			r, err := b.read(ctx)
			if err != nil {
				return nil, err
			}
			if slices.Contains(r.generation, me) {
				return r.generation, nil
			}
		}
		r, err := b.ready(ctx)
		if err != nil {
			return nil, err
		}
		if slices.Contains(r.generation, me) {
			return r.generation, nil
		}
		lowestGone, err := b.gather(ctx, r)
		if errors.Is(err, znode.ErrReadAgain) {
			woken = true
			continue
		}
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("waiting for %d members", b.size)
		if err := s.Wait(ctx, what, r.changed.Fired(), lowestGone, disconnected, o.Done()); err != nil {
			return nil, err
		}
		woken = woken || session.Happened(r.changed.Fired())
	}
}

// ready is the znode ready as it was read.
type ready struct {
	exists     bool
	version    int32
	mzxid      int64
	generation []string // the names of members
	changed    *session.Watch
}

// ready reads ready and watches it. If ready does not exist that is one request, as
// in the text.
func (b *doubleBarrier) ready(ctx context.Context) (ready, error) {
	exists, changed, err := b.line.Session.ExistsW(ctx, b.readyPath())
	if err != nil || !exists {
		return ready{changed: changed}, err
	}
	r, err := b.read(ctx)
	r.changed = changed
	return r, err
}

// read reads ready, which may not exist.
func (b *doubleBarrier) read(ctx context.Context) (ready, error) {
	node, err := b.line.Session.Get(ctx, b.readyPath())
	if errors.Is(err, recipes.ErrNoNode) {
		return ready{}, nil
	}
	if err != nil {
		return ready{}, err
	}
	return ready{
		exists:     true,
		version:    node.Stat.Version,
		mzxid:      node.Stat.Mzxid,
		generation: strings.Fields(string(node.Data)),
	}, nil
}

// gather lists the members, for one that ready does not name. If a member of the last
// generation is still present, it returns an event: the lowest of them has gone,
// which by the text's rule is the last to go. Otherwise, if enough members wait, it
// lets in those that have waited longest, and the caller has to read ready again.
//
// Every member that sees enough others does this, even if it does not enter itself.
// As in the text, usually only the last member to come sees enough. If that one dies,
// another has to do it. Of those that try, one succeeds.
func (b *doubleBarrier) gather(ctx context.Context, r ready) (<-chan struct{}, error) {
	entries, err := b.members(ctx)
	if err != nil {
		return nil, err
	}
	if staying := among(entries, r.generation); len(staying) > 0 {
		_, gone, err := b.line.Session.GetW(ctx, gopath.Join(b.line.Path, staying[0]))
		if errors.Is(err, recipes.ErrNoNode) {
			return nil, znode.ErrReadAgain
		}
		if err != nil {
			return nil, err
		}
		return gone.Fired(), nil
	}
	if len(entries) < b.size {
		return nil, nil
	}
	return nil, b.admit(ctx, r, entries[:b.size])
}

// admit writes ready in one transaction with a check of each member that it names. A
// member that has crashed is thus not counted, and no member enters with fewer than
// the size. Whatever the outcome, the caller has to read ready again.
//
// An old ready, none of whose members is present, is replaced by its version. But
// ready may have been deleted and created again since it was read. A later one may
// have the same version, and name members that have not seen it yet. So admit reads
// ready again after the listing. If it is still the same, then every ready written
// from now on names exactly these members, as long as all of them are present. It
// names the first members of a listing, which were in line together with these. And no
// listing skips a member for one that came later.
func (b *doubleBarrier) admit(ctx context.Context, r ready, members []line.Entry) error {
	var t session.Txn
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
		t.Check(gopath.Join(b.line.Path, m.Name), recipes.AnyVersion)
	}
	path, data := b.readyPath(), []byte(strings.Join(names, "\n"))
	if r.exists {
		if now, err := b.read(ctx); err != nil {
			return err
		} else if now.mzxid != r.mzxid {
			return znode.ErrReadAgain
		}
		t.Set(path, data, r.version)
	} else {
		t.Create(path, data, false)
	}
	err := b.line.Session.Commit(ctx, t)
	for _, harmless := range []error{nil, recipes.ErrNoNode, recipes.ErrNodeExists, recipes.ErrBadVersion} {
		if errors.Is(err, harmless) {
			return znode.ErrReadAgain
		}
	}
	if znode.TryAgain(ctx, b.line.Session, err) {
		return znode.ErrReadAgain
	}
	return znode.GivenUp(ctx, b.line.Session, "let members in", err) // the caller has not entered, either way
}

// among returns the names of those entries that are in the generation, in order.
func among(entries []line.Entry, generation []string) []string {
	in := make(map[string]bool, len(generation))
	for _, name := range generation {
		in[name] = true
	}
	var names []string
	for _, e := range entries {
		if in[e.Name] {
			names = append(names, e.Name)
		}
	}
	return names
}
