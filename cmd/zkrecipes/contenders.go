package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contendersVerb shows who stands in line.
type contendersVerb struct {
	onePath
	election bool
	follow   bool // -watch
}

func (v *contendersVerb) describe() doc {
	return doc{
		usage:    "contenders [flags] PATH",
		synopsis: "Show who holds a lock, and who waits",
		about: `
Shows the contenders for the lock at PATH: who holds it, and who waits, in order. The
answer may be outdated when you read it.
`,
		examples: [2]string{
			"zkrecipes contenders /backups/db1",
			"zkrecipes contenders -format=json -election /service/leader",
		},
		rules: `
KIND tells the recipe: lock, semaphore, election, read and write (of a shared lock),
priority-read and priority-write (with the priority). Each recipe has a line of its
own at PATH. The word "revocable" follows if the contender can be asked to give the
lock back, "asked" if it was asked, and "successor" if a holder has chosen it to be next.
"curator" or "kazoo" follows if the name is of that library (-dialect of lock and elect).
Locks of Curator and go-zookeeper have the same names as ours, and kazoo's Election is
a lock. Ephemeral sequential znodes with names that no recipe has are counted: they may
be contenders of another program, which does not look for these.

A znode with the name of a contender and no session "blocks": it is persistent, so all
behind it wait until it is deleted. zkrecipes says how.

SINCE is when the contender joined, by the server's clock; in a priority lock it is
when the lock was granted. TOKEN is the fencing token.

With -watch a terminal shows the table, and draws it again when the line has moved.
Elsewhere each change is a line: "waits", "holds", "leads", "blocks" or "left", then KIND,
SESSION and the data. zkrecipes looks once a second, less often at a long line. It waits while
no server answers. A signal ends it with exit code 0; it ends too when nobody reads.

` + onceCodes,
	}
}

func (v *contendersVerb) flags(f *flag.FlagSet) {
	f.BoolVar(&v.election, "election", false, "only the candidates of an election")
	f.BoolVar(&v.follow, "watch", false, "show the line as it moves, until a signal comes")
}

func (v *contendersVerb) run(ctx context.Context, t *tool, out *output) error {
	if v.follow {
		return v.watch(ctx, t, out)
	}
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		lines, err := s.Contenders(ctx, v.path, v.kinds()...)
		if err != nil {
			return err
		}
		if len(lines.Contenders) == 0 {
			out.none("nobody stands in line at %s", v.path)
		}
		return out.result(v.picture(lines), func(w io.Writer) {
			if len(lines.Contenders) > 0 {
				v.table(w, lines.Contenders)
			}
			blocking(w, lines.Contenders)
			others(w, lines.Contenders)
			if lines.Unknown > 0 {
				fmt.Fprintf(w, "and %d ephemeral sequential znode(s) of programs that zkrecipes does not know\n", lines.Unknown)
			}
		})
	})
}

// others says how to stand in line with contenders of other libraries.
func others(w io.Writer, line []recipes.Contender) {
	for _, d := range recipes.Dialects() {
		n := 0
		for _, c := range line {
			if c.Dialect == d {
				n++
			}
		}
		if n > 0 && dialect(d).other() {
			fmt.Fprintf(w, "%d of %s: -dialect %s stands in line with them\n", n, d, d)
		}
	}
}

// kinds are those of the contenders that are shown.
func (v *contendersVerb) kinds() []recipes.Kind {
	if v.election {
		return []recipes.Kind{recipes.KindElection}
	}
	return recipes.Kinds()
}

// picture is a line in JSON.
type picture struct {
	Path       string          `json:"path"`
	Contenders []contenderJSON `json:"contenders"`
	Unknown    int             `json:"unknown,omitempty"` // ephemeral sequential znodes of other programs
}

type contenderJSON struct {
	State      string    `json:"state"`
	Kind       string    `json:"kind"`
	Dialect    string    `json:"dialect,omitempty"` // whose name the znode has; none from an older plugin
	Since      time.Time `json:"since"`
	SessionID  string    `json:"session_id"`      // in hexadecimal, as ZooKeeper's own tools have it
	Token      int64     `json:"token,omitempty"` // none while one waits in a priority lock
	Znode      string    `json:"znode"`
	Priority   *int      `json:"priority,omitempty"`
	Successor  bool      `json:"successor,omitempty"`
	Revocable  bool      `json:"revocable,omitempty"`
	ForceAfter string    `json:"force_after,omitempty"`
	Asked      bool      `json:"asked,omitempty"`
	Data       string    `json:"data"`
	DataBase64 []byte    `json:"data_base64,omitempty"` // of data that are no text
}

func (v *contendersVerb) picture(lines recipes.Lines) picture {
	p := picture{Path: v.path, Contenders: []contenderJSON{}, Unknown: lines.Unknown}
	for _, c := range lines.Contenders {
		p.Contenders = append(p.Contenders, toJSON(c))
	}
	return p
}

func toJSON(c recipes.Contender) contenderJSON {
	j := contenderJSON{
		State: stateOf(c), Kind: kindOf(c), Dialect: string(c.Dialect), Since: c.Since.UTC(), SessionID: sessionOf(c), Token: int64(c.Token), Znode: c.Znode,
		Successor: c.Successor, Revocable: c.Revocable, Asked: c.Revoked,
	}
	j.Data, j.DataBase64 = inJSON(c.Data)
	if c.Kind == recipes.KindPriorityLock {
		j.Priority = &c.Priority
	}
	if c.Grace > 0 {
		j.ForceAfter = c.Grace.String()
	}
	return j
}

func (v *contendersVerb) table(out io.Writer, line []recipes.Contender) {
	if len(line) == 0 {
		fmt.Fprintf(out, "nobody stands in line at %s\n", v.path)
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STATE\tKIND\tSINCE\tSESSION\tTOKEN\tDATA")
	for _, c := range line {
		token := "-"
		if c.Token != 0 {
			token = fmt.Sprint(int64(c.Token))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", stateOf(c), kindOf(c)+marksOf(c), c.Since.UTC().Format(time.RFC3339), sessionOf(c), token, printable(c.Data))
	}
	_ = w.Flush()
}

func stateOf(c recipes.Contender) string {
	switch {
	case c.SessionID == 0:
		return "blocks"
	case !c.Holds:
		return "waits"
	case c.Kind == recipes.KindElection:
		return "leads"
	}
	return "holds"
}

// marksOf are what sets a contender apart from others of its kind, for people.
func marksOf(c recipes.Contender) (marks string) {
	if c.Kind == recipes.KindPriorityLock {
		marks = fmt.Sprintf(":%d", c.Priority)
	}
	if dialect(c.Dialect).other() {
		marks += "," + string(c.Dialect)
	}
	if c.Successor {
		marks += ",successor"
	}
	switch {
	case c.Revoked:
		marks += ",asked"
	case c.Revocable:
		marks += ",revocable"
	}
	return marks
}

func sessionOf(c recipes.Contender) string { return fmt.Sprintf("0x%x", uint64(c.SessionID)) }

// printable shows what anybody may have stored, without letting it move the
// cursor or fill the screen.
func printable(data []byte) string {
	const most = 80
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	quoted := fmt.Sprintf("%q", text)
	if inner := quoted[1 : len(quoted)-1]; inner == text {
		return text
	}
	return quoted
}
