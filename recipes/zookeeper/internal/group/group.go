package group

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// partyMarker follows the GUID in the names of members of kazoo's Party. A Party lists only
// names that contain it. This was read in the source of kazoo 2.8.0.
const partyMarker = "__party__"

type group struct {
	znode.Recipe
	cfg recipes.GroupConfig
}

func New(s *session.Session, path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	dialect, err := cfg.Dialect.Normalize()
	switch {
	case err != nil || cfg.Name == "":
	case dialect == recipes.Kazoo:
		err = fmt.Errorf("%w: kazoo's Party chooses the names of its members: no member can be named %q", recipes.ErrInvalid, cfg.Name)
	default:
		err = recipes.ValidateName(cfg.Name)
	}
	r, err := znode.New(s, "group", path, err)
	if err != nil {
		return nil, err
	}
	cfg.Dialect = dialect
	return &group{r, cfg}, nil
}

func (g *group) Join(ctx context.Context, data []byte) (recipes.Membership, error) {
	if err := g.stores(data); err != nil {
		return nil, g.Failed(err)
	}
	name, parent := g.cfg.Name, g.Session.Ensure
	if g.party() {
		guid := uuid.New()
		name, parent = hex.EncodeToString(guid[:])+partyMarker, g.Session.Provide // a Party creates its path only once
	}
	o, err := znode.Metered(ctx, g.Recipe, func() (*znode.Ephemeral, error) {
		return znode.CreateEphemeral(ctx, g.Session, g.Path(), name, znode.MemberMarker, data, parent)
	})
	if err != nil {
		return nil, g.Failed(err)
	}
	return membership{o, g}, nil
}

func (g *group) party() bool { return g.cfg.Dialect == recipes.Kazoo }

// stores returns ErrInvalid for data on which kazoo's members() fails.
func (g *group) stores(data []byte) error {
	if g.party() && !utf8.Valid(data) {
		return fmt.Errorf("%w: the data are not UTF-8: kazoo's Party cannot list them", recipes.ErrInvalid)
	}
	return nil
}

// Resume is znode.Resume.
func (g *group) Resume(ctx context.Context, path string, token recipes.Token) (recipes.Membership, error) {
	o, err := znode.Resume(ctx, g.Session, g.Path(), path, token)
	if err != nil {
		return nil, g.Failed(err)
	}
	return membership{o, g}, nil
}

func (g *group) Members(ctx context.Context) ([]recipes.Member, error) {
	nodes, err := znode.Read(ctx, g.Session, g.selection())
	if err != nil {
		return nil, g.Failed(err)
	}
	return g.members(nodes), nil
}

func (g *group) Watch(ctx context.Context) (<-chan []recipes.Member, error) {
	out, err := znode.Observe(ctx, g.Session, g.selection(), "group", g.members)
	return out, g.Failed(err)
}

// selection includes members that cannot be read: one of them must not hide the others.
func (g *group) selection() znode.Selection {
	return znode.Selection{Root: g.Path(), Partial: true}
}

// members returns the ephemeral children, in the order in which they were created. In a
// Party, they are only the children that kazoo's members list.
func (g *group) members(nodes znode.Nodes) []recipes.Member {
	present := make([]recipes.Member, 0, len(nodes))
	for path, n := range nodes {
		hidden := n.Unreadable && n.Stat.Czxid == 0 // such a znode may be ephemeral
		if znode.OwnerOf(n.Stat) == 0 && !hidden || g.party() && !strings.Contains(gopath.Base(path), partyMarker) {
			continue
		}
		present = append(present, recipes.Member{
			Name:      gopath.Base(path),
			Znode:     path,
			Token:     recipes.Token(n.Stat.Czxid),
			SessionID: n.Stat.EphemeralOwner,
			Since:     since(n),
			Data:      n.Data,

			Unreadable: n.Unreadable,
		})
	}
	slices.SortFunc(present, func(a, b recipes.Member) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Name, b.Name)) // hidden ones have no token
	})
	return present
}

type membership struct {
	*znode.Ephemeral
	group *group
}

func (m membership) Update(ctx context.Context, data []byte) error {
	if err := m.group.stores(data); err != nil {
		return m.group.Failed(err)
	}
	return m.Ephemeral.Update(ctx, data)
}

func (m membership) Leave(ctx context.Context) error { return m.Remove(ctx, "leave") }

type names struct{ znode.Recipe }

func NewNames(s *session.Session, path string) (recipes.Names, error) {
	r, err := znode.New(s, "names", path)
	if err != nil {
		return nil, err
	}
	return &names{r}, nil
}

func (n *names) failed(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("name %q of %s: %w", name, n.Path(), err)
}

func (n *names) Register(ctx context.Context, name string, data []byte) (recipes.Registration, error) {
	if err := recipes.ValidateName(name); err != nil {
		return nil, n.failed(name, err)
	}
	o, err := znode.Metered(ctx, n.Recipe, func() (*znode.Ephemeral, error) {
		return znode.CreateEphemeral(ctx, n.Session, n.Path(), name, "", data, n.Session.Ensure)
	})
	if err != nil {
		return nil, n.failed(name, err)
	}
	return registration{o}, nil
}

// Resume is znode.Resume.
func (n *names) Resume(ctx context.Context, path string, token recipes.Token) (recipes.Registration, error) {
	o, err := znode.Resume(ctx, n.Session, n.Path(), path, token)
	if err != nil {
		return nil, n.failed(gopath.Base(path), err)
	}
	return registration{o}, nil
}

func (n *names) RegisterPersistent(ctx context.Context, name string, data []byte) error {
	err := cmp.Or(recipes.ValidateName(name), ctx.Err())
	if err != nil {
		return n.failed(name, err)
	}
	path := n.Child(name)
	var t session.Txn
	t.Create(path, data, false)
	_, err = n.Session.CommitWithReceipt(ctx, n.Path(), n.Session.Ensure, t)
	if errors.Is(err, recipes.ErrNodeExists) {
		err = znode.Taken(ctx, n.Session, path, err)
	}
	return n.failed(name, err)
}

func (n *names) Unregister(ctx context.Context, name string, token recipes.Token) error {
	err := cmp.Or(recipes.ValidateName(name), ctx.Err())
	if err == nil {
		err = znode.ErrReadAgain
	}
	for errors.Is(err, znode.ErrReadAgain) {
		err = n.unregister(ctx, n.Child(name), token)
	}
	return n.failed(name, err)
}

// unregister deletes the znode that it has read. If another client was faster, it returns
// znode.ErrReadAgain.
func (n *names) unregister(ctx context.Context, path string, token recipes.Token) error {
	var now znode.Counted
	outcome, err := n.Session.CommitRead(ctx, n.Path(), n.Session.Ensure, func(ctx context.Context) (t session.Txn, err error) {
		now, err = znode.ReadCounted(ctx, n.Session, path, znode.Purpose{Compare: true, Delete: true}, func() (*session.Stat, error) {
			stat, err := n.Session.Stat(ctx, path)
			switch {
			case err != nil:
			case token != 0 && stat.Czxid != int64(token):
				err = fmt.Errorf("%w: it is registered with token %d, not %d", recipes.ErrBadVersion, stat.Czxid, token)
			case znode.OwnerOf(stat) != 0:
				err = znode.TakenBy(path, stat)
			}
			return &stat, err
		})
		if err == nil {
			now.Delete(&t)
		}
		return t, err
	})
	return now.Done(outcome, err)
}

func (n *names) Lookup(ctx context.Context, name string) (recipes.Record, error) {
	if err := recipes.ValidateName(name); err != nil {
		return recipes.Record{}, n.failed(name, err)
	}
	path := n.Child(name)
	node, err := n.Session.Get(ctx, path)
	if err != nil {
		return recipes.Record{}, n.failed(name, err)
	}
	return record(path, node), nil
}

func (n *names) List(ctx context.Context) ([]recipes.Record, error) {
	nodes, err := znode.Read(ctx, n.Session, znode.Selection{Root: n.Path(), Named: true, Partial: true})
	if err != nil {
		return nil, n.Failed(err)
	}
	records := make([]recipes.Record, 0, len(nodes))
	for path, node := range nodes {
		records = append(records, record(path, node))
	}
	slices.SortFunc(records, func(a, b recipes.Record) int { return cmp.Compare(a.Name, b.Name) })
	return records, nil
}

// Watch watches only the znode of the name, and nothing below it.
func (n *names) Watch(ctx context.Context, name string) (<-chan recipes.Record, error) {
	if err := recipes.ValidateName(name); err != nil {
		return nil, n.failed(name, err)
	}
	path := n.Child(name)
	out, err := znode.Observe(ctx, n.Session, znode.Selection{Root: path, Scope: znode.Single}, "name", func(nodes znode.Nodes) recipes.Record {
		if node, exists := nodes[path]; exists {
			return record(path, node)
		}
		return recipes.Record{}
	})
	return out, n.failed(name, err)
}

// since returns when a znode was created, or the zero time if the server has not reported it.
func since(node session.Node) time.Time {
	if node.Stat.Czxid == 0 {
		return time.Time{}
	}
	return time.UnixMilli(node.Stat.Ctime)
}

func record(path string, node session.Node) recipes.Record {
	return recipes.Record{
		Name:       gopath.Base(path),
		Znode:      path,
		Token:      recipes.Token(node.Stat.Czxid),
		SessionID:  znode.OwnerOf(node.Stat),
		Since:      since(node),
		Data:       node.Data,
		Unreadable: node.Unreadable,
	}
}

type registration struct{ *znode.Ephemeral }

func (r registration) Unregister(ctx context.Context) error { return r.Remove(ctx, "unregister") }
