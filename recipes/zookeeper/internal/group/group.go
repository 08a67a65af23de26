package group

import (
	"cmp"
	"context"
	"fmt"
	gopath "path"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type group struct {
	session *session.Session
	path    string
	cfg     recipes.GroupConfig
}

// New returns the group at path.
func New(s *session.Session, path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("group: %w", err)
	}
	if cfg.Name != "" {
		if err := recipes.ValidateName(cfg.Name); err != nil {
			return nil, fmt.Errorf("group %s: %w", path, err)
		}
	}
	return &group{session: s, path: path, cfg: cfg}, nil
}

func (g *group) Path() string { return g.path }

func (g *group) Join(ctx context.Context, data []byte) (recipes.Membership, error) {
	o, err := znode.CreateEphemeral(ctx, g.session, g.path, g.cfg.Name, znode.MemberMarker, data)
	if err != nil {
		return nil, g.failed(err)
	}
	return membership{o}, nil
}

// TakeUp is znode.TakeUp.
func (g *group) TakeUp(ctx context.Context, path string, token recipes.Token) (recipes.Membership, error) {
	o, err := znode.TakeUp(ctx, g.session, g.path, path, token)
	if err != nil {
		return nil, g.failed(err)
	}
	return membership{o}, nil
}

func (g *group) Members(ctx context.Context) ([]recipes.Member, error) {
	nodes, err := znode.Read(ctx, g.session, znode.Selection{Root: g.path})
	if err != nil {
		return nil, g.failed(err)
	}
	return members(nodes), nil
}

func (g *group) Watch(ctx context.Context) (<-chan []recipes.Member, error) {
	out, err := znode.Stream(ctx, g.session, znode.Selection{Root: g.path}, "group", members)
	if err != nil {
		return nil, g.failed(err)
	}
	return out, nil
}

func (g *group) failed(err error) error { return fmt.Errorf("group %s: %w", g.path, err) }

// members returns the ephemeral children, in the order in which they were created.
func members(nodes znode.Nodes) []recipes.Member {
	present := make([]recipes.Member, 0, len(nodes))
	for path, n := range nodes {
		if znode.OwnerOf(n.Stat) == 0 {
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

type membership struct{ *znode.Ephemeral }

func (m membership) Leave(ctx context.Context) error { return m.Remove(ctx, "leave") }
