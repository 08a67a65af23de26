package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// groupMembersVerb shows who is in a group.
type groupMembersVerb struct {
	onePath
	dialect dialect
}

func (v *groupMembersVerb) flags(f *flag.FlagSet) { f.Var(&v.dialect, "dialect", dialectUsage) }

func (v *groupMembersVerb) describe() doc {
	return doc{
		usage:    "group members [flags] PATH",
		synopsis: "Show the members of a group",
		about: `
Shows the members of the group at PATH. The member that has been there longest comes
first.
`,
		examples: [2]string{
			"zkrecipes group members /web",
			"zkrecipes group members -format=json /web",
		},
		rules: `
SINCE is when the member joined, by the server's clock. TOKEN tells it from a later
member of the same name. A member that has died is shown until its session times out.
-dialect kazoo shows only what kazoo's Party lists.

` + onceCodes,
	}
}

func (v *groupMembersVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		g, err := s.Group(v.path, recipes.GroupConfig{Dialect: recipes.Dialect(v.dialect)})
		if err != nil {
			return err
		}
		members, err := g.Members(ctx)
		if err != nil {
			return err
		}
		list := []memberJSON{}
		for _, m := range members {
			list = append(list, inMemberJSON(m))
		}
		return out.result(struct {
			Path    string       `json:"path"`
			Members []memberJSON `json:"members"`
		}{v.path, list}, func(w io.Writer) { v.table(w, members) })
	})
}

func (v *groupMembersVerb) table(out io.Writer, members []recipes.Member) {
	if len(members) == 0 {
		fmt.Fprintf(out, "nobody is in the group %s\n", v.path)
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSINCE\tSESSION\tTOKEN\tDATA")
	for _, m := range members {
		fmt.Fprintf(w, "%s\t%s\t%#x\t%d\t%s\n", m.Name, m.Since.UTC().Format(time.RFC3339), uint64(m.SessionID), m.Token, printable(m.Data))
	}
	_ = w.Flush()
}

// memberJSON is a member in JSON.
type memberJSON struct {
	Name       string    `json:"name"`
	Znode      string    `json:"znode"`
	Since      time.Time `json:"since"`
	SessionID  string    `json:"session_id"` // in hexadecimal, as ZooKeeper's own tools have it
	Token      int64     `json:"token"`
	Data       string    `json:"data"`
	DataBase64 []byte    `json:"data_base64,omitempty"` // of data that are no text
}

func inMemberJSON(m recipes.Member) memberJSON {
	j := memberJSON{Name: m.Name, Znode: m.Znode, Since: m.Since.UTC(), SessionID: fmt.Sprintf("%#x", uint64(m.SessionID)), Token: int64(m.Token)}
	j.Data, j.DataBase64 = inJSON(m.Data)
	return j
}
