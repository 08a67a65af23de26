package main

import (
	"context"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// namesLookupVerb shows who has a name.
type namesLookupVerb struct{ pathAndName }

func (v *namesLookupVerb) describe() doc {
	return doc{
		usage:    "names lookup [flags] PATH NAME",
		synopsis: "Show the data of a name",
		about: `
Writes the data of NAME in the directory at PATH to stdout, as they are stored. If
nobody has registered NAME, the exit code is 3.
`,
		examples: [2]string{
			"zkrecipes names lookup /services db",
			"zkrecipes names lookup -format=json /services db",
		},
		rules: `
-format=json shows the registration too: its session, its time, and whether it is
persistent.

` + onceCodes,
	}
}

func (v *namesLookupVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		n, err := s.Names(v.path)
		if err != nil {
			return err
		}
		r, err := n.Lookup(ctx, v.name)
		if err != nil {
			return err
		}
		if len(r.Data) == 0 {
			out.none("the data of name %s are empty", v.name)
		}
		return out.stored(inRecordJSON(r), r.Data)
	})
}

// recordJSON is a registration in JSON.
type recordJSON struct {
	Name       string    `json:"name"`
	Znode      string    `json:"znode"`
	Since      time.Time `json:"since"`
	Persistent bool      `json:"persistent"`
	SessionID  string    `json:"session_id,omitempty"` // of one that is not persistent, in hexadecimal
	Token      int64     `json:"token"`
	Data       string    `json:"data"`
	DataBase64 []byte    `json:"data_base64,omitempty"` // of data that are no text
	Unreadable bool      `json:"unreadable,omitempty"`  // its ACL hides the data
}

func inRecordJSON(r recipes.Record) recordJSON {
	j := recordJSON{Name: r.Name, Znode: r.Znode, Since: r.Since.UTC(), Persistent: r.SessionID == 0, Token: int64(r.Token), Unreadable: r.Unreadable}
	if !j.Persistent {
		j.SessionID = fmt.Sprintf("%#x", uint64(r.SessionID))
	}
	j.Data, j.DataBase64 = inJSON(r.Data)
	return j
}
