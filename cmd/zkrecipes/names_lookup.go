package main

import (
	"context"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// namesLookupVerb shows who has a name.
type namesLookupVerb struct{ pathAndName }

func (v *namesLookupVerb) describe() (arguments, synopsis, help string) {
	return "names lookup [flags] PATH NAME", "Show the data of a name", `
Writes the data that NAME was registered with, in the directory at PATH, to stdout,
as they are stored. -format=json shows the registration too: whose it is, since
when, and whether it is for good.

` + onceCodes
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
}

func inRecordJSON(r recipes.Record) recordJSON {
	j := recordJSON{Name: r.Name, Znode: r.Znode, Since: r.Since.UTC(), Persistent: r.SessionID == 0, Token: int64(r.Token)}
	if !j.Persistent {
		j.SessionID = fmt.Sprintf("%#x", uint64(r.SessionID))
	}
	j.Data, j.DataBase64 = inJSON(r.Data)
	return j
}
