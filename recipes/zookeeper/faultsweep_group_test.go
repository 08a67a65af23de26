package zookeeper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestFaultSweepGroup(t *testing.T) {
	member := func(name string) func(context.Context, *stage) error {
		return func(ctx context.Context, st *stage) error {
			g := must[recipes.Group](st.t)(st.victim.Group(sweepPath, recipes.GroupConfig{Name: name}))
			m, err := g.Join(ctx, []byte("one"))
			if err != nil {
				return err
			}
			updateErr := m.Update(ctx, []byte("two"))
			if updateErr == nil {
				members, err := must[recipes.Group](st.t)(st.other.Group(sweepPath, recipes.GroupConfig{})).Members(st.ctx)
				if err != nil || len(members) > 1 || len(members) == 1 && string(members[0].Data) != "two" {
					st.t.Errorf("members %+v, %v after one joined and updated", members, err)
				}
			}
			writeErr := settled(m.Write(ctx))
			return errors.Join(settled(updateErr), writeErr, giveBack(m.Leave))
		}
	}
	free := func(name string) func(*stage, error) {
		return func(st *stage, _ error) {
			st.awaitGone()
			m, err := must[recipes.Group](st.t)(st.other.Group(sweepPath, recipes.GroupConfig{Name: name})).Join(st.ctx, nil)
			if err != nil {
				st.t.Fatalf("after the fault another member: %v", err)
			}
			if err := m.Leave(st.ctx); err != nil {
				st.t.Error(err)
			}
		}
	}
	taken := recipes.GroupConfig{Name: "ann"}
	runSweeps(t, "group", []sweep{
		{name: "member", act: member(""), check: free("")},
		{name: "named", act: member("ann"), check: free("ann")},
		{
			name: "taken",
			prepare: func(st *stage) {
				must[recipes.Membership](st.t)(must[recipes.Group](st.t)(st.other.Group(sweepPath, taken)).Join(st.ctx, nil))
			},
			act: func(ctx context.Context, st *stage) error {
				_, err := must[recipes.Group](st.t)(st.victim.Group(sweepPath, taken)).Join(ctx, nil)
				if err == nil {
					st.t.Error("a taken name was given again")
				}
				if errors.Is(err, recipes.ErrNodeExists) {
					return nil
				}
				return err
			},
		},
		{
			name: "watch",
			prepare: func(st *stage) {
				g := must[recipes.Group](st.t)(st.other.Group(sweepPath, recipes.GroupConfig{}))
				must[recipes.Membership](st.t)(g.Join(st.ctx, []byte("one")))
			},
			act: func(ctx context.Context, st *stage) error {
				g := must[recipes.Group](st.t)(st.victim.Group(sweepPath, recipes.GroupConfig{}))
				snapshots, err := g.Watch(ctx)
				if err != nil {
					return err
				}
				other := must[recipes.Group](st.t)(st.other.Group(sweepPath, recipes.GroupConfig{}))
				must[recipes.Membership](st.t)(other.Join(st.ctx, []byte("two")))
				for members := range snapshots {
					if len(members) == 2 {
						return nil
					}
				}
				return errors.Join(st.victim.Err(), ctx.Err())
			},
		},
	})
}
