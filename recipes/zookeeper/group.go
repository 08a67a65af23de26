package zookeeper

import (
	"cmp"
	"context"
	"fmt"
	gopath "path"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// memberMarker ends the fixed part of the name of a member that the application
// has not named.
const memberMarker = "member-"

type group struct {
	session *session.Session
	path    string
	cfg     recipes.GroupConfig
}

func (s zkSession) Group(path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("group: %w", err)
	}
	if cfg.Name != "" {
		if err := recipes.ValidateName(cfg.Name); err != nil {
			return nil, fmt.Errorf("group %s: %w", path, err)
		}
	}
	return &group{session: s.Session, path: path, cfg: cfg}, nil
}

func (g *group) Path() string { return g.path }

func (g *group) Join(ctx context.Context, data []byte) (recipes.Membership, error) {
	o, err := own(ctx, g.session, g.path, g.cfg.Name, memberMarker, data)
	if err != nil {
		return nil, g.failed(err)
	}
	return membership{o}, nil
}

func (g *group) Members(ctx context.Context) ([]recipes.Member, error) {
	m := newMirror(g.session, g.path, false, false)
	if err := m.look(ctx); err != nil {
		return nil, g.failed(err)
	}
	return members(m), nil
}

func (g *group) Watch(ctx context.Context) (<-chan []recipes.Member, error) {
	out, err := stream(ctx, newMirror(g.session, g.path, false, true), "group", members)
	if err != nil {
		return nil, g.failed(err)
	}
	return out, nil
}

func (g *group) failed(err error) error { return fmt.Errorf("group %s: %w", g.path, err) }

// members are the ephemeral ones among the children, in the order in which they
// were created.
func members(m *mirror) []recipes.Member {
	present := make([]recipes.Member, 0, len(m.nodes))
	for path, n := range m.nodes {
		if path == m.root || sessionOf(n.node.Stat) == 0 {
			continue
		}
		present = append(present, recipes.Member{
			Name:      gopath.Base(path),
			Znode:     path,
			Token:     recipes.Token(n.node.Stat.Czxid),
			SessionID: n.node.Stat.EphemeralOwner,
			Since:     time.UnixMilli(n.node.Stat.Ctime),
			Data:      n.node.Data,
		})
	}
	slices.SortFunc(present, func(a, b recipes.Member) int { return cmp.Compare(a.Token, b.Token) })
	return present
}

type membership struct{ *owned }

func (m membership) Leave(ctx context.Context) error { return m.give(ctx, "leave") }
