package data

import (
	"cmp"
	"context"
	"errors"
	"flag"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var namesList = verb.Verb{
	Name: "names list", Usage: "[flags] PATH", New: verb.New[namesListVerb],
	Synopsis: "Show all names of a directory",
	Help: `Shows the names that are registered in the directory at PATH. The list is sorted.

    zkrecipes names list /services
    zkrecipes names list -format=json /services

SESSION is the session that owns the name, or "persistent". Data that this user may not
read is shown as (unreadable). SINCE is the time of the registration, by the server's
clock. TOKEN distinguishes it from a later registration of the same name.

` + verb.OnceCodes,
}

type namesListVerb struct{ verb.OnePath }

func (v *namesListVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, names(v.Path), recipes.Names.List, func(records []recipes.Record) error {
		if len(records) == 0 {
			t.None("no name is registered at %s", v.Path)
		}
		return showOwned(t, v.Path, "names", records, nameInJSON)
	})
}

var namesLookup = verb.Verb{
	Name: "names lookup", Usage: "[flags] PATH NAME", New: verb.New[namesLookupVerb],
	Synopsis: "Show the data of a name",
	Help: `Writes the data of NAME in the directory at PATH to stdout, byte for byte. If NAME is
not registered, the exit code is 3.

    zkrecipes names lookup /services db
    zkrecipes names lookup -format=json /services db

A terminal gets control characters as escapes. -format=json also shows the registration:
its session, its time, and whether it is persistent.

` + verb.OnceCodes,
}

type namesLookupVerb struct{ pathAndName }

func (v *namesLookupVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, names(v.Path), func(n recipes.Names, ctx context.Context) (recipes.Record, error) {
		return n.Lookup(ctx, v.name)
	}, func(r recipes.Record) error {
		if len(r.Data) == 0 {
			t.None("the data of name %s is empty", v.name)
		}
		return t.Stored(nameInJSON(r), r.Data)
	})
}

var namesUnregister = verb.Verb{
	Name: "names unregister", Usage: "[flags] PATH NAME", New: verb.New[namesUnregisterVerb], ExitCodeOnly: true,
	Synopsis: "Remove a persistent name",
	Help: `Removes the persistent registration of NAME in the directory at PATH, even if another
client made it. With -token it removes only that registration, and not a later one.

    zkrecipes names unregister /services db
    zkrecipes names unregister -token 4294967301 /services db

A name that belongs to a session is not removed: it is deleted with that session.

` + verb.OnceCodes,
}

type namesUnregisterVerb struct {
	pathAndName
	token int64
}

func (v *namesUnregisterVerb) Flags(f *flag.FlagSet) {
	f.Int64Var(&v.token, "token", 0, helptext.Common("only the registration with this `token`, as names register and names list show it"))
}

func (v *namesUnregisterVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Once(ctx, t, names(v.Path), func(ctx context.Context, n recipes.Names) error {
		if err := n.Unregister(ctx, v.name, recipes.Token(v.token)); err != nil {
			return err
		}
		return t.Done(verb.Object{"name", v.name, "unregistered", true})
	})
}

type pathAndName struct {
	verb.OnePath
	name string
}

func (p *pathAndName) Arguments(args []string) error {
	if len(args) != 2 {
		return errors.New("give PATH and NAME, after the flags")
	}
	p.Path, p.name = args[0], args[1]
	return cmp.Or(recipes.ValidatePath(p.Path), recipes.ValidateName(p.name))
}

func names(path string) func(recipes.Client) (recipes.Names, error) {
	return func(s recipes.Client) (recipes.Names, error) { return s.Names(path) }
}

func nameInJSON(r recipes.Record) ownedJSON {
	j := ownedInJSON(r)
	j.Persistent = new(r.SessionID == 0 && r.Token != 0)
	if r.SessionID == 0 {
		j.SessionID = ""
	}
	return j
}
