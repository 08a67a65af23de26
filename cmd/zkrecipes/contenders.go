package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contendersVerb shows a line.
type contendersVerb struct {
	election bool
	path     string
}

func (v *contendersVerb) describe() (arguments, synopsis, help string) {
	return "contenders [flags] PATH", "Show who holds a lock, and who waits", `
Shows who stands in line at PATH, in order: the first one holds the lock, or
leads. SINCE is when a contender joined, by the server's clock; TOKEN is its
fencing token. It is a picture that may be outdated when you see it.`
}

func (v *contendersVerb) flags(f *flag.FlagSet) {
	f.BoolVar(&v.election, "election", false, "PATH is that of an election")
}

func (v *contendersVerb) arguments(args []string) error {
	if len(args) != 1 {
		return errors.New("give one PATH, after the flags")
	}
	v.path = args[0]
	return recipes.ValidatePath(v.path)
}

func (v *contendersVerb) otherwise() int { return exitFailed }

func (v *contendersVerb) run(ctx context.Context, t *tool, out *output) error {
	ctx, cancel := context.WithTimeout(ctx, 2*recipes.DefaultOpenTimeout)
	defer cancel()
	return t.withSession(ctx, out, func(s recipes.Session) error {
		line, err := v.line(ctx, s)
		if err != nil {
			return err
		}
		return out.result(v.picture(line), func(w io.Writer) { v.table(w, line) })
	})
}

func (v *contendersVerb) line(ctx context.Context, s recipes.Session) ([]recipes.Contender, error) {
	if v.election {
		e, err := s.Election(v.path, recipes.ElectionConfig{})
		if err != nil {
			return nil, err
		}
		return e.Candidates(ctx)
	}
	l, err := s.Lock(v.path, recipes.LockConfig{})
	if err != nil {
		return nil, err
	}
	return l.Contenders(ctx)
}

// picture is a line in JSON.
type picture struct {
	Path       string          `json:"path"`
	Contenders []contenderJSON `json:"contenders"`
}

type contenderJSON struct {
	State     string    `json:"state"`
	Since     time.Time `json:"since"`
	SessionID string    `json:"session_id"` // in hexadecimal, as ZooKeeper's own tools have it
	Token     int64     `json:"token"`
	Znode     string    `json:"znode"`
	Data      string    `json:"data"`
}

func (v *contendersVerb) picture(line []recipes.Contender) picture {
	p := picture{Path: v.path, Contenders: []contenderJSON{}}
	for i, c := range line {
		p.Contenders = append(p.Contenders, contenderJSON{
			State: v.state(i), Since: c.Since.UTC(), SessionID: sessionID(c), Token: int64(c.Token), Znode: c.Znode, Data: string(c.Data),
		})
	}
	return p
}

func (v *contendersVerb) table(out io.Writer, line []recipes.Contender) {
	if len(line) == 0 {
		fmt.Fprintf(out, "nobody stands in line at %s\n", v.path)
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STATE\tSINCE\tSESSION\tTOKEN\tDATA")
	for i, c := range line {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", v.state(i), c.Since.UTC().Format(time.RFC3339), sessionID(c), c.Token, printable(c.Data))
	}
	_ = w.Flush()
}

func (v *contendersVerb) state(i int) string {
	switch {
	case i > 0:
		return "waits"
	case v.election:
		return "leads"
	}
	return "holds"
}

func sessionID(c recipes.Contender) string { return fmt.Sprintf("0x%x", uint64(c.SessionID)) }

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
