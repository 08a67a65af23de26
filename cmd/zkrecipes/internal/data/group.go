package data

import (
	"bytes"
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var groupMembers = verb.Verb{
	Name: "group members", Usage: "[flags] PATH", New: verb.New[groupMembersVerb],
	Synopsis: "Show the members of a group",
	Help: `Shows the members of the group at PATH. The member that joined first comes first.

    zkrecipes group members /web
    zkrecipes group members -format=json /web

SINCE is the time at which the member joined, by the server's clock. TOKEN distinguishes
it from a later member with the same name. A member that has died is shown until its
session expires. The data of a member that cannot be read is shown as (unreadable).
-dialect kazoo shows only the members that kazoo's Party lists.

` + verb.OnceCodes,
}

type groupMembersVerb struct{ group }

func (v *groupMembersVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, v.open, recipes.Group.Members, func(members []recipes.Member) error {
		if len(members) == 0 {
			t.None("the group %s has no members", v.Path)
		}
		return showOwned(t, v.Path, "members", verb.List(members, func(m recipes.Member) recipes.Record { return recipes.Record(m) }), ownedInJSON)
	})
}

type group struct{ pathAndDialect }

func (g *group) open(s recipes.Client) (recipes.Group, error) {
	return s.Group(g.Path, recipes.GroupConfig{Dialect: g.dialect})
}

var groupWatch = verb.Verb{
	Name: "group watch", Usage: "[flags] PATH", New: verb.New[groupWatchVerb],
	Synopsis: "Show each change of a group's members",
	Help: `Shows the members of the group at PATH, and then a line for each change. A signal
ends it.

    zkrecipes group watch /web
    zkrecipes group watch -format=json /web

A line is "joined", "left" or "updated", the member's name, and its data. Data that does
not fit on one line is quoted. The first lines show the present members as joined.
Changes in quick succession may be shown as one.

` + verb.FollowHelp,
}

type groupWatchVerb struct {
	group
	known []recipes.Member
}

func (v *groupWatchVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Follow(ctx, t, v.open, recipes.Group.Watch, func(now []recipes.Member) error {
		changes := memberChanges(v.known, now)
		v.known = now
		for _, c := range changes {
			if err := t.Line(c, fmt.Sprintf("%s %s %s", c.Event, c.Name, verb.OnOneLine(c.data))); err != nil {
				return err
			}
		}
		return nil
	})
}

type memberChange struct {
	Event string `json:"event"` // joined, left, updated
	ownedJSON
	data []byte
}

// memberKey identifies a member. A member that cannot be read may have no token.
type memberKey struct {
	token recipes.Token
	name  string
}

// memberChanges returns the changes between two lists: members that have left, then members
// that have joined or changed their data. It compares tokens, because another member can
// take the same name.
func memberChanges(before, now []recipes.Member) (changes []memberChange) {
	change := func(event string, m recipes.Member) {
		changes = append(changes, memberChange{event, ownedInJSON(recipes.Record(m)), m.Data})
	}
	gone, present := verb.Compare(before, now, func(m recipes.Member) memberKey { return memberKey{m.Token, m.Name} })
	for _, m := range gone {
		change("left", m)
	}
	for _, m := range present {
		switch {
		case m.Was == nil:
			change("joined", m.Is)
		case !bytes.Equal(m.Was.Data, m.Is.Data):
			change("updated", m.Is)
		}
	}
	return changes
}
