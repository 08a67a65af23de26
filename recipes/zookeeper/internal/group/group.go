package group

import (
	"cmp"
	"context"
	"encoding/hex"
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
	o, err := znode.CreateEphemeral(ctx, g.Session, g.Path(), name, znode.MemberMarker, data, parent)
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
	nodes, err := znode.Read(ctx, g.Session, znode.Selection{Root: g.Path()})
	if err != nil {
		return nil, g.Failed(err)
	}
	return g.members(nodes), nil
}

func (g *group) Watch(ctx context.Context) (<-chan []recipes.Member, error) {
	out, err := znode.Observe(ctx, g.Session, znode.Selection{Root: g.Path()}, "group", g.members)
	return out, g.Failed(err)
}

// members returns the ephemeral children, in the order in which they were created. In a
// Party, they are only the children that kazoo's members list.
func (g *group) members(nodes znode.Nodes) []recipes.Member {
	present := make([]recipes.Member, 0, len(nodes))
	for path, n := range nodes {
		if znode.OwnerOf(n.Stat) == 0 || g.party() && !strings.Contains(gopath.Base(path), partyMarker) {
			continue
		}
		present = append(present, recipes.Member{
			Name:      gopath.Base(path),
			Znode:     path,
			Token:     recipes.Token(n.Stat.Czxid),
			SessionID: n.Stat.EphemeralOwner,
			Since:     time.UnixMilli(n.Stat.Ctime),
			Data:      n.Data,
		})
	}
	slices.SortFunc(present, func(a, b recipes.Member) int { return cmp.Compare(a.Token, b.Token) })
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
