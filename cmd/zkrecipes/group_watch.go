package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// groupWatchVerb shows who comes and goes.
type groupWatchVerb struct {
	onePath
	dialect dialect
	known   []recipes.Member
}

func (v *groupWatchVerb) flags(f *flag.FlagSet) { f.Var(&v.dialect, "dialect", dialectUsage) }

func (v *groupWatchVerb) describe() doc {
	return doc{
		usage:    "group watch [flags] PATH",
		synopsis: "Show who joins and leaves a group",
		about: `
Shows the members of the group at PATH, and then a line for each change. It ends when
a signal comes.
`,
		examples: [2]string{
			"zkrecipes group watch /web",
			"zkrecipes group watch -format=json /web",
		},
		rules: `
A line is "joined", "left" or "updated", the member's name, and its data. Data that
would not fit a line are quoted. Members that are there at the beginning are shown as
joined. Changes that follow each other fast may be shown as one.

` + followHelp,
	}
}

func (v *groupWatchVerb) run(ctx context.Context, t *tool, out *output) error {
	return follow(ctx, t, out, func(ctx context.Context, s recipes.Session) (<-chan []recipes.Member, error) {
		g, err := s.Group(v.path, recipes.GroupConfig{Dialect: recipes.Dialect(v.dialect)})
		if err != nil {
			return nil, err
		}
		return g.Watch(ctx)
	}, func(now []recipes.Member) error {
		changes := memberChanges(v.known, now)
		v.known = now
		for _, c := range changes {
			if err := out.line(c, fmt.Sprintf("%s %s %s", c.Event, c.Name, onOneLine(c.data))); err != nil {
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
