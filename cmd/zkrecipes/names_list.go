package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// namesListVerb shows all names of a directory.
type namesListVerb struct{ onePath }

func (v *namesListVerb) describe() doc {
	return doc{
		usage:    "names list [flags] PATH",
		synopsis: "Show all names of a directory",
		about: `
Shows the names that are registered in the directory at PATH. They are sorted.
`,
		examples: [2]string{
			"zkrecipes names list /services",
			"zkrecipes names list -format=json /services",
		},
		rules: `
SESSION is the session that owns the name, or "persistent" for a name without one.
Data that this user may not read are shown as (unreadable).
SINCE is when the name was registered, by the server's clock. TOKEN tells the
registration from a later one of the same name.

` + onceCodes,
	}
}

func (v *namesListVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		n, err := s.Names(v.path)
		if err != nil {
			return err
		}
		records, err := n.List(ctx)
		if err != nil {
			return err
		}
		list := []recordJSON{}
		for _, r := range records {
			list = append(list, inRecordJSON(r))
		}
		if len(list) == 0 {
			out.none("no name is registered at %s", v.path)
		}
		return out.result(struct {
			Path  string       `json:"path"`
			Names []recordJSON `json:"names"`
		}{v.path, list}, func(w io.Writer) { v.table(w, list, records) })
	})
}

func (v *namesListVerb) table(out io.Writer, list []recordJSON, records []recipes.Record) {
	if len(list) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSINCE\tSESSION\tTOKEN\tDATA")
	for i, r := range list {
		data := printable(records[i].Data)
		if r.Unreadable {
			data = "(unreadable)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", r.Name, r.Since.Format(time.RFC3339), cmp.Or(r.SessionID, "persistent"), r.Token, data)
	}
	_ = w.Flush()
}
