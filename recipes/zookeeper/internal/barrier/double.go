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

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// readyName is the znode that, in the text, the last member creates. Its data are the names
// of the members that may enter, one on each line.
const readyName = "ready"

type doubleBarrier struct {
	znode.Recipe
	line *line.Line // orders the members; no member waits in it
	size int
}

func NewDouble(s *session.Session, path string, cfg recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	r, err := znode.New(s, "double barrier", path, cfg.Validate())
	if err != nil {
		return nil, err
	}
	members := &line.Line{
		Session: s, Path: path, Markers: []string{znode.MemberMarker},
		Dialect: cmp.Or(cfg.Dialect, recipes.ZooKeeper),
	}
	return &doubleBarrier{Recipe: r, line: members, size: cfg.Size}, nil
}

func (b *doubleBarrier) Size() int { return b.size }

func (b *doubleBarrier) Enter(ctx context.Context, data []byte) (recipes.Passage, error) {
	return b.EnterAnnounced(ctx, uuid.New(), data, func(recipes.Place) {})
}

// EnterAnnounced is Enter. It calls joined with the member's znode before it waits. ResumeUnannounced
// finds the member by the GUID.
func (b *doubleBarrier) EnterAnnounced(ctx context.Context, guid uuid.UUID, data []byte, joined func(recipes.Place)) (recipes.Passage, error) {
	return b.granted(znode.Metered(ctx, b.Recipe, func() (*passage, error) { return b.enter(ctx, guid, data, joined) }))
}

func (b *doubleBarrier) granted(p *passage, err error) (recipes.Passage, error) {
	if err != nil {
		return nil, b.Failed(err)
	}
	return p, nil
}

func (b *doubleBarrier) enter(ctx context.Context, guid uuid.UUID, data []byte, joined func(recipes.Place)) (*passage, error) {
	// This comes before the znode is created: members of other libraries would count it.
	var err error
	if b.compatible() {
		err = b.vacant(ctx)
	} else {
		_, err = b.members(ctx)
	}
	if err != nil {
		return nil, err
	}
	o, err := b.create(ctx, guid, data)
	if err != nil {
		return nil, err
	}
	joined(recipes.Place{Znode: o.Znode(), Position: recipes.UnknownPosition})
	return b.awaitAdmission(ctx, o)
}

func (b *doubleBarrier) create(ctx context.Context, guid uuid.UUID, data []byte) (*znode.Ephemeral, error) {
	if b.compatible() {
		return znode.CreateEphemeral(ctx, b.Session, b.Path(), b.nameOf(guid), "", data, b.line.Parent)
	}
	return znode.CreateProtected(ctx, b.Session, b.Path(), guid, znode.MemberMarker, data, b.line.Parent)
}

// awaitAdmission waits until the member has entered. If it does not, its znode is deleted.
func (b *doubleBarrier) awaitAdmission(ctx context.Context, o *znode.Ephemeral) (*passage, error) {
	r := round{zxid: math.MaxInt64} // outside the compatibility modes no name is used again
	var err error
	if b.compatible() {
		r, err = b.waitForReady(ctx, o)
	} else {
		r.members, err = b.awaitReady(ctx, o)
	}
	if err != nil {
		o.End(recipes.ErrReleased)
		b.Session.Delete(o.Znode())
		return nil, err
	}
	return b.passage(o, r), nil
}

func (b *doubleBarrier) passage(o *znode.Ephemeral, r round) *passage {
	return &passage{Ephemeral: o, session: b.Session, barrier: b, members: r.members, round: r}
}

// members lists the members, in order. It fails if one of them is third-party.
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

// awaitReady waits until ready names the member, and returns all members that it names.
func (b *doubleBarrier) awaitReady(ctx context.Context, o *znode.Ephemeral) ([]string, error) {
	var r ready
	woken := false // woken by a change of ready, which then most likely names the member
	err := znode.Await(ctx, b.Session, fmt.Sprintf("waiting for %d members", b.size), func() (events []<-chan struct{}, err error) {
		if err := o.Err(); err != nil {
			return nil, err
		}
		if woken = woken || r.changed != nil && session.Happened(r.changed.Fired()); woken {
			// This read has no watch: the deletion of ready need not wake a member that
			// has entered.
			if r, err = b.read(ctx); err != nil || slices.Contains(r.generation, o.Name()) {
				return nil, err
			}
		}
		if r, err = b.ready(ctx); err != nil || slices.Contains(r.generation, o.Name()) {
			return nil, err
		}
		lowestGone, err := b.gather(ctx, r)
		woken = woken || errors.Is(err, znode.ErrReadAgain)
		return append(znode.Events(r.changed), lowestGone, o.Done()), err
	})
	return r.generation, err
}

// ready is the state of the znode ready.
type ready struct {
	exists     bool
	version    int32
	mzxid      int64
	generation []string // the names of members
	changed    *session.Watch
}

// ready reads ready with a watch. If ready does not exist, that takes one request, as in
// the text.
func (b *doubleBarrier) ready(ctx context.Context) (ready, error) {
	exists, changed, err := b.Session.ExistsW(ctx, b.readyPath())
	if err != nil || !exists {
		return ready{changed: changed}, err
	}
	r, err := b.read(ctx)
	r.changed = changed
	return r, err
}

// read reads ready, which may not exist.
func (b *doubleBarrier) read(ctx context.Context) (ready, error) {
	node, err := b.Session.Get(ctx, b.readyPath())
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

// gather lists the members. The caller is a member that ready does not name. If a member
// of the last generation is still present, gather returns an event that fires when the lowest of
// them is gone. By the text's rule, the lowest leaves last. Otherwise, if enough members wait, it
// admits those that have waited longest, and the caller has to read ready again.
//
// Every member that counts enough members does this, even if it does not enter itself.
// As in the text, usually only the last member to come counts enough. If that member
// dies, another one has to do it. If several try, one succeeds.
func (b *doubleBarrier) gather(ctx context.Context, r ready) (<-chan struct{}, error) {
	entries, err := b.members(ctx)
	if err != nil {
		return nil, err
	}
	if staying := among(entries, r.generation); len(staying) > 0 {
		_, gone, err := b.Session.GetW(ctx, b.Child(staying[0]))
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

// admit writes ready in one transaction with a check of each member that it names. So a
// member that has crashed is not counted, and no member enters with fewer than the size.
// Whatever the outcome, the caller has to read ready again.
//
// An old ready, of which no member is present, is replaced at its version. But it may have
// been deleted and created again since it was read. The later one may have the same
// version, and name members that have not read it yet. So admit reads ready again after
// the listing. If ready is still the same, then every ready written from now on names
// exactly these members, as long as all of them are present. The reason is that each ready names
// the first members of a listing. Every later listing begins with these members, because no listing
// puts a later member ahead of an earlier one.
func (b *doubleBarrier) admit(ctx context.Context, r ready, members []line.Entry) error {
	var t session.Txn
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
		t.Check(b.Child(m.Name), recipes.AnyVersion)
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
	err := b.Session.Commit(ctx, t)
	for _, harmless := range []error{nil, recipes.ErrNoNode, recipes.ErrNodeExists, recipes.ErrBadVersion} {
		if errors.Is(err, harmless) {
			return znode.ErrReadAgain
		}
	}
	return znode.Again(ctx, b.Session, "admit members", err) // if it is given up, the caller has not entered
}

// among returns the names of the entries that are in the generation, in order.
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

// Resume resumes a member that has entered in another process of this session: see
// session.Resume. The member's znode must be this session's, created by the transaction
// that is the token. Outside the compatibility modes, ready must name the member. As long
// as that znode exists, no member replaces ready.
//
// Otherwise the error matches recipes.ErrNotHeld, and nothing is changed. If the znode
// is gone or was replaced, the error also matches recipes.ErrRemoved.
func (b *doubleBarrier) Resume(ctx context.Context, path string, token recipes.Token) (recipes.Passage, error) {
	if err := b.isMember(path); err != nil {
		return nil, b.Failed(err)
	}
	if exists, err := b.exists(ctx, path); err != nil {
		return nil, err
	} else if !exists {
		return nil, b.Failed(fmt.Errorf("resume: %w: %s", recipes.ErrRemoved, path))
	}
	r, err := b.entered(ctx)
	if err != nil {
		return nil, b.Failed(err)
	}
	if !slices.Contains(r.members, gopath.Base(path)) {
		return nil, b.Failed(fmt.Errorf("resume: %w: %s has not entered", recipes.ErrNotHeld, path))
	}
	o, err := znode.Resume(ctx, b.Session, b.Path(), path, token)
	if err != nil {
		return nil, b.Failed(err)
	}
	b.markReadyResumed()
	return b.passage(o, r), nil
}

// markReadyResumed keeps session.DropRest from deleting ready, which in a compatibility
// mode may be the session's. It keeps others out while members are inside.
func (b *doubleBarrier) markReadyResumed() {
	if b.compatible() {
		b.Session.MarkResumed(b.readyPath())
	}
}

// entered returns the members that have entered. In a compatibility mode these are all
// members that are present, because the next round begins only after this member is gone.
// Ready may be gone already in that mode. The token proves that this member has entered.
func (b *doubleBarrier) entered(ctx context.Context) (round, error) {
	if b.compatible() {
		return b.round(ctx)
	}
	r, err := b.read(ctx)
	return round{r.generation, math.MaxInt64}, err
}

// ResumeLeaving is Resume for a member that was leaving. members are the members that
// entered together. Most members delete their znode first and then wait for the others, so
// the znode may be gone. Then the passage has ended, and Leave only waits for the others.
func (b *doubleBarrier) ResumeLeaving(ctx context.Context, path string, token recipes.Token, members []string) (recipes.Passage, error) {
	r := round{members: make([]string, len(members)), zxid: math.MaxInt64}
	for i, m := range members {
		if err := b.isMember(m); err != nil {
			return nil, b.Failed(err)
		}
		r.members[i] = gopath.Base(m)
	}
	if !slices.Contains(members, path) || token == 0 {
		return nil, b.Failed(fmt.Errorf("resume: %w: %q is not among the members, or has no token", recipes.ErrInvalid, path))
	}
	exists, err := b.exists(ctx, path)
	if err != nil {
		return nil, err
	}
	if exists {
		return b.Resume(ctx, path, token)
	}
	if b.compatible() {
		stat, err := b.Session.Stat(ctx, b.Path())
		if err != nil && !errors.Is(err, recipes.ErrNoNode) {
			return nil, b.Failed(err)
		}
		r.zxid = stat.Pzxid
		b.markReadyResumed()
	}
	return b.passage(znode.Released(b.Session, path, token), r), nil
}

// exists reports whether a member's znode exists, in this session or in another one.
func (b *doubleBarrier) exists(ctx context.Context, path string) (bool, error) {
	_, err := b.Session.Stat(ctx, path)
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, b.Failed(err)
	}
	return true, nil
}

// ResumeWaiting is Enter for a member that another process of this session has created.
// When that process ended, the caller had no answer that the member had entered. The others
// have counted it since its first Enter. On an error its znode is deleted, as in Enter.
// joined is called after the member is resumed, before it waits. If its znode is gone, the
// error matches recipes.ErrRemoved.
func (b *doubleBarrier) ResumeWaiting(ctx context.Context, path string, joined func(recipes.Place)) (recipes.Passage, error) {
	err := b.isMember(path)
	if err != nil {
		return nil, b.Failed(err)
	}
	o, err := znode.ResumeWaiter(ctx, b.Session, b.Path(), path)
	if err != nil {
		return nil, b.Failed(err)
	}
	b.markReadyResumed()
	joined(recipes.Place{Znode: path, Position: recipes.UnknownPosition})
	return b.granted(b.awaitAdmission(ctx, o))
}

// ResumeUnannounced is ResumeWaiting for a member whose znode the caller does not know, because
// the other process has ended before it called joined. If there is none, the error matches
// recipes.ErrUnsupported.
func (b *doubleBarrier) ResumeUnannounced(ctx context.Context, guid uuid.UUID, joined func(recipes.Place)) (recipes.Passage, error) {
	err := b.Session.Sync(ctx, b.Path()) // after this Sync, the other process creates no znode
	var names []string
	if err == nil {
		names, err = b.line.Names(ctx)
	}
	if err != nil {
		return nil, b.Failed(err)
	}
	at := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, b.nameOf(guid)) })
	if at < 0 {
		return nil, b.Failed(fmt.Errorf("resume: %w: %s has no such member", recipes.ErrUnsupported, b.Path()))
	}
	return b.ResumeWaiting(ctx, b.Child(names[at]), joined)
}

func (b *doubleBarrier) isMember(path string) error {
	name := gopath.Base(path)
	if b.Child(name) != path || memberOf(name) != b.line.Dialect {
		return fmt.Errorf("resume: %w: %q is not a member of %s", recipes.ErrInvalid, path, b.Path())
	}
	return nil
}
