package run

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var elect = verb.Verb{
	Name: "elect", Usage: "[flags] PATH -- COMMAND [ARGUMENT...]", New: verb.New[electVerb], Otherwise: exit.Own,
	Synopsis: "Run a command while leading an election",
	Help: `Campaigns for the leadership at PATH, and runs the command while it leads. It resigns
when the command has ended.

    zkrecipes elect /service/leader -- ./serve
    zkrecipes elect -data 10.0.0.5:8080 /service/leader -- ./serve -port 8080

Only one candidate leads at a time. The others wait, first in, first out. As soon as the
command runs, zkrecipes acknowledges the leadership with -data. zkrecipes contenders
-election PATH shows the leader and the candidates.

For candidates with Curator's LeaderLatch or kazoo's Election give -dialect. There is no
acknowledgement then. Curator's LeaderSelector is a lock: use zkrecipes lock. If
zkrecipes finds a candidate of another library, it gives up with exit code 125 and names
it.

With -again, zkrecipes campaigns again, at the end of the wait queue, when the command
has ended or the leadership was lost. A signal ends that, with the command's exit code. A
hangup ends it only if the hangup ends the command. -timeout limits each campaign.

$ZKRECIPES_TOKEN is the fencing token. Send it with each write, so that the receiver can
refuse a token smaller than the largest that it has seen.
` + guardHelp,
}

type electVerb struct {
	guard
	dialect recipes.Dialect
}

func (v *electVerb) Flags(f *flag.FlagSet) {
	v.guard.Flags(f)
	v.verboseFlag(f)
	v.statusFlag(f)
	verb.DialectFlag(f, &v.dialect)
	f.BoolVar(&v.again, "again", false, helptext.Common("campaign again, after the end of the command or a loss of the leadership"))
}

func (v *electVerb) Run(ctx context.Context, t *verb.Tool) error {
	v.lineKind = recipes.KindElection
	return v.guard.run(ctx, t, func(ctx context.Context, s recipes.Client) (grant, error) {
		g, err := v.grantBy(ctx, s, "election", grants.Options{Dialect: v.dialect})
		if l, ok := g.Grant.(recipes.Leadership); ok && !verb.OtherLibrary(v.dialect) { // other libraries have no acknowledgement
			g.started = func(ctx context.Context) error { return l.Acknowledge(ctx, []byte(v.data)) }
		}
		return g, verb.Foreign(err)
	})
}
