package data

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var groupMembers = verb.Verb{
	Name: "group members", Usage: "[flags] PATH", New: verb.New[groupMembersVerb],
	Synopsis: "Show the members of a group",
	Help: `Shows the members of the group at PATH. The member that has been there longest comes
first.

    zkrecipes group members /web
    zkrecipes group members -format=json /web

SINCE is when the member joined, by the server's clock. TOKEN tells it from a later
member of the same name. A member that has died is shown until its session times out.
-dialect kazoo shows only what kazoo's Party lists.

` + verb.OnceCodes,
}

type groupMembersVerb struct{ group }

func (v *groupMembersVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, v.open, recipes.Group.Members, func(members []recipes.Member) error {
		return t.Result(verb.Object{"path", v.Path, "members", verb.List(members, inMemberJSON)}, func(w io.Writer) {
			if len(members) == 0 {
				fmt.Fprintf(w, "the group %s has no members\n", v.Path)
			}
			verb.Table("NAME\tSINCE\tSESSION\tTOKEN\tDATA", members, func(m recipes.Member) string {
				return fmt.Sprintf("%s\t%s\t%#x\t%d\t%s", m.Name, m.Since.UTC().Format(time.RFC3339), uint64(m.SessionID), m.Token, verb.Printable(m.Data))
			})(w)
		})
	})
}

// group is what the verbs of a group have in common.
type group struct{ pathAndDialect }

func (g *group) open(s recipes.Client) (recipes.Group, error) {
	return s.Group(g.Path, recipes.GroupConfig{Dialect: recipes.Dialect(g.dialect)})
}

// memberJSON is a member in JSON.
type memberJSON struct {
	Name      string    `json:"name"`
	Znode     string    `json:"znode"`
	Since     time.Time `json:"since"`
	SessionID string    `json:"session_id"` // in hexadecimal, as ZooKeeper's own tools have it
	Token     int64     `json:"token"`
	verb.Data
}

func inMemberJSON(m recipes.Member) memberJSON {
	return memberJSON{m.Name, m.Znode, m.Since.UTC(), fmt.Sprintf("%#x", uint64(m.SessionID)), int64(m.Token), verb.InJSON(m.Data)}
}

var groupWatch = verb.Verb{
	Name: "group watch", Usage: "[flags] PATH", New: verb.New[groupWatchVerb],
	Synopsis: "Show who joins and leaves a group",
	Help: `Shows the members of the group at PATH, and then a line for each change. It ends when
a signal comes.

    zkrecipes group watch /web
    zkrecipes group watch -format=json /web

A line is "joined", "left" or "updated", the member's name, and its data. Data that
would not fit a line are quoted. Members that are there at the beginning are shown as
joined. Changes that follow each other fast may be shown as one.

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

// memberChange is one change of a group.
type memberChange struct {
	Event string `json:"event"` // joined, left, updated
	memberJSON
	data []byte
}

// memberChanges returns how a group became another: members that have left, then
// members that have joined or have other data. Tokens distinguish members, since a
// name may come back.
func memberChanges(before, now []recipes.Member) (changes []memberChange) {
	change := func(event string, m recipes.Member) {
		changes = append(changes, memberChange{event, inMemberJSON(m), m.Data})
	}
	known, present := byToken(before), byToken(now)
	for _, m := range before {
		if _, there := present[m.Token]; !there {
			change("left", m)
		}
	}
	for _, m := range now {
		former, there := known[m.Token]
		switch {
		case !there:
			change("joined", m)
		case !bytes.Equal(former.Data, m.Data):
			change("updated", m)
		}
	}
	return changes
}

func byToken(members []recipes.Member) map[recipes.Token]recipes.Member {
	m := make(map[recipes.Token]recipes.Member, len(members))
	for _, one := range members {
		m[one.Token] = one
	}
	return m
}
