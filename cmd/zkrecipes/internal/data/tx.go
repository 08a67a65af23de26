package data

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type txPath struct{ verb.OnePath }

const txHelp = `Exit code: 0 for commit, 5 for abort. Otherwise:

    1      zkrecipes failed, for example to reach ZooKeeper
    2      wrong usage or configuration, or the transaction has no such site
    3      there is no transaction, or all its sites are done
    4      refused: there is another transaction or another vote, or the site is dead
    6      unknown outcome: the answer was lost; zkrecipes tx status shows the state
    123    the session was lost
    124    the time limit has passed, although ZooKeeper answers
    128+n  signal n came before the decision`

func (p *txPath) open(s recipes.Client) (recipes.Transaction, error) {
	return s.Transaction(p.Path, recipes.TransactionConfig{})
}

type txSite struct {
	txPath
	site string
}

func (p *txSite) take(path, site string) error {
	p.Path, p.site = path, site
	return cmp.Or(recipes.ValidatePath(path), recipes.ValidateSites([]string{site}))
}

// decided shows the decision. For an abort it returns the exit code exit.Aborted.
func (p *txPath) decided(t *verb.Tool, d recipes.Decision) error {
	shown := verb.Object{"path", p.Path, "decision", decisionWord(d)} // commit, abort
	if d.Reason != "" {
		shown = append(shown, "reason", d.Reason)
	}
	err := t.Say(shown, inWords(d))
	if err == nil && !d.Commit {
		return exit.Silently(exit.Aborted)
	}
	return err
}

func decisionWord(d recipes.Decision) string {
	if d.Commit {
		return string(recipes.VoteCommit)
	}
	return string(recipes.VoteAbort)
}

// inWords returns the decision as text. Scripts read its first word.
func inWords(d recipes.Decision) string {
	if d.Reason == "" {
		return decisionWord(d)
	}
	return fmt.Sprintf("%s (%s)", decisionWord(d), verb.Printable([]byte(d.Reason)))
}

// withSession runs f with a session. A signal ends ctx; the signal and -timeout end bounded. The
// session is not replaced once f runs, because with the variant own-nodes it is the site.
func (p *txPath) withSession(ctx context.Context, t *verb.Tool, timeout time.Duration, try bool,
	f func(ctx, bounded context.Context, s recipes.Client) error) error {
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	var bounded context.Context
	return exit.Coded(verb.Await(ctx, t, verb.Patience{Timeout: timeout, Try: try},
		func(ctx context.Context, s recipes.Client) (recipes.Client, error) { bounded = ctx; return s, nil },
		func(s recipes.Client) error { return f(ctx, bounded, s) }))
}

// ended reports whether a wait failed because of its timeout or a signal. The plugin has the
// same deadline, and may notice it first.
func ended(waiting context.Context, err error) bool {
	return err != nil && (waiting.Err() != nil || errors.Is(err, context.DeadlineExceeded))
}

func (p *txPath) explain(err error) error {
	switch {
	case errors.Is(err, recipes.ErrNodeExists):
		return fmt.Errorf("%w; zkrecipes tx status %s shows the transaction there", err, p.Path)
	case errors.Is(err, recipes.ErrRemoved):
		return fmt.Errorf("%w; zkrecipes tx abort %s ends the transaction", err, p.Path)
	case errors.Is(err, recipes.ErrUnknownSite), errors.Is(err, recipes.ErrVoted), errors.Is(err, recipes.ErrUndecided):
		return fmt.Errorf("%w; zkrecipes tx status %s shows the sites", err, p.Path)
	}
	return err
}

var txBegin = verb.Verb{
	Name: "tx begin", Usage: "-sites SITE,... [flags] PATH", New: verb.New[txBeginVerb], ExitCodeOnly: true,
	Synopsis: "Begin a two-phase commit, and wait for the decision",
	Help: `Begins a transaction at PATH, in which each site votes with zkrecipes tx vote. It waits
for the decision and shows it.

    zkrecipes tx begin -sites db,cache -data 'schema 7' -timeout 1m /deploy/7
    zkrecipes tx begin -sites db,cache -detach /deploy/7

The decision is commit if all sites have voted commit. It is abort as soon as one site
has voted abort. It is kept until every site has called tx done.

All sites wait for a site that does not vote. When -timeout is over, or after a signal,
zkrecipes aborts the transaction unless there is a decision. With -detach, or if
zkrecipes is killed, a site that waits in tx vote makes the decision.

The variants differ in which process watches the votes:

    coordinator-only  this process watches the votes
    all-watch         each site watches the votes of all sites; the cost grows with
                      the number of sites
    own-nodes         tx vote must run until the decision: if a site dies, that is
                      noticed, and the transaction is aborted

` + txHelp,
}

type txBeginVerb struct {
	txPath
	sites   []string
	list    string
	data    string
	variant string
	timeout time.Duration
	detach  bool
}

func (v *txBeginVerb) Flags(f *flag.FlagSet) {
	f.StringVar(&v.list, "sites", "", helptext.Common("`names` of the sites, separated by commas; required"))
	f.StringVar(&v.data, "data", "", helptext.Common("`text` for the sites, which tx status shows; - reads it from stdin"))
	f.StringVar(&v.variant, "variant", string(recipes.CoordinatorOnly), "the `variant`: which process watches the votes")
	verb.DurationVar(f, &v.timeout, "timeout", 0, helptext.Common("abort if there is no decision within this `duration`, including the time to connect;\n0 waits for ever"))
	f.BoolVar(&v.detach, "detach", false, helptext.Common("do not wait: a site that waits makes the decision"))
}

func (v *txBeginVerb) Arguments(args []string) error {
	if v.list == "" {
		return errors.New("-sites is missing: the names of the sites that vote")
	}
	v.sites = strings.Split(v.list, ",")
	_, err := recipes.Variant(v.variant).Normalize()
	return cmp.Or(v.OnePath.Arguments(args), recipes.ValidateSites(v.sites), err)
}

func (v *txBeginVerb) Run(ctx context.Context, t *verb.Tool) error {
	payload, err := verb.Payload(v.data) // before a session is open
	if err != nil {
		return err
	}
	return v.withSession(ctx, t, v.timeout, v.detach, func(ctx, bounded context.Context, s recipes.Client) error {
		tx, err := s.Transaction(v.Path, recipes.TransactionConfig{Variant: recipes.Variant(v.variant)})
		if err != nil {
			return err
		}
		if err := v.beginTransaction(ctx, tx, payload); err != nil {
			return v.explain(err)
		}
		if v.detach {
			return t.Done(verb.Object{"path", v.Path, "begun", true})
		}
		d, err := v.coordinate(ctx, bounded, tx)
		if err != nil {
			return err
		}
		return v.decided(t, d)
	})
}

// beginTransaction begins the transaction. A signal ends the call only after CloseTimeout. If it ended
// the call at once, zkrecipes would not know whether the transaction exists, and its sites
// could wait for a decision.
func (v *txBeginVerb) beginTransaction(ctx context.Context, tx recipes.Transaction, payload []byte) error {
	beginning, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(verb.CloseTimeout, cancel) })()
	return tx.Begin(beginning, payload, v.sites...)
}

// coordinate waits for the decision. At its timeout it aborts the transaction, because
// otherwise the sites could wait for ever.
func (v *txBeginVerb) coordinate(ctx, waiting context.Context, tx recipes.Transaction) (recipes.Decision, error) {
	d, err := tx.Coordinate(waiting)
	if !ended(waiting, err) {
		return d, err
	}
	reason := fmt.Sprintf("no decision within %v", v.timeout)
	if ctx.Err() != nil {
		reason = "the coordinator was interrupted"
	}
	ending, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	return tx.Abort(ending, reason)
}

var txVote = verb.Verb{
	Name: "tx vote", Usage: "[flags] PATH SITE commit|abort", New: verb.New[txVoteVerb], ExitCodeOnly: true,
	Synopsis: "Vote in a two-phase commit, and wait for the decision",
	Help: `Votes as SITE in the transaction at PATH. Then it waits for the decision and shows it.

    zkrecipes tx vote /deploy/7 db commit
    zkrecipes tx vote -timeout 1m /deploy/7 db abort

A site that votes commit must be able to commit, and must not act before the decision.
When it has acted, it calls tx done. In a script:

    zkrecipes tx vote /deploy/7 db commit
    case $? in
    0) ./apply || exit ;;
    5) ./undo || exit ;;
    *) exit 1 ;; # no decision: run the same command again
    esac
    zkrecipes tx done /deploy/7 db

A vote cannot be changed. To give the same vote again is not an error, and shows the
decision: a restarted site does that. With the variant own-nodes, a site must stay in tx
vote until the decision. If tx vote ends before, the transaction is aborted.

` + txHelp,
}

type txVoteVerb struct {
	txSite
	vote    recipes.Vote
	timeout time.Duration
}

func (v *txVoteVerb) Flags(f *flag.FlagSet) {
	verb.DurationVar(f, &v.timeout, "timeout", 0, helptext.Common("stop waiting for the decision after this `duration`, including the time to connect; 0\nwaits for ever"))
}

func (v *txVoteVerb) Arguments(args []string) error {
	if len(args) != 3 {
		return errors.New("give PATH, SITE and commit or abort, after the flags")
	}
	v.vote = recipes.Vote(args[2])
	return cmp.Or(v.take(args[0], args[1]), v.vote.Validate())
}

func (v *txVoteVerb) Run(ctx context.Context, t *verb.Tool) error {
	return v.withSession(ctx, t, v.timeout, false, func(ctx, waiting context.Context, s recipes.Client) error {
		tx, err := v.open(s)
		if err != nil {
			return err
		}
		site, err := tx.Join(ctx, v.site)
		if err != nil {
			return v.explain(err)
		}
		if err := site.Vote(ctx, v.vote); err != nil {
			return v.explain(err)
		}
		d, err := site.Wait(waiting)
		if err == nil {
			return v.decided(t, d)
		}
		if ended(waiting, err) {
			err = fmt.Errorf("%w; %s", err, v.advice(tx))
		}
		return err
	})
}

// advice returns what happens to the vote now that the site no longer waits.
func (v *txVoteVerb) advice(tx recipes.Transaction) string {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	if status, err := tx.Status(ctx); err == nil && status.Variant == recipes.OwnNodes {
		return "the site's own node is deleted now: that aborts the transaction, unless there is a decision"
	}
	return fmt.Sprintf("the vote is kept: the same command waits again, and zkrecipes tx status %s shows which votes are missing", v.Path)
}
