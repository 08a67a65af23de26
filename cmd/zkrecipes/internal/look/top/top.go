// Package top contains the verb top, which shows the wait queues below a path while they change.
//
//  1. A [survey] reads the tree in rounds through the plugin, and keeps a [line] for each queue.
//  2. It finds cycles of waits (deadlock.go), and asks servers about sessions (sessions.go).
//  3. Each [snapshot] is shown on the screen of a terminal (screen.go), or as lines (report.go).
package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Verb is the verb.
var Verb = verb.Verb{
	Name: "top", Usage: "[flags] [ROOT]", New: verb.New[action],
	Synopsis: "Show all wait queues below a path, live",
	Help: `Shows the wait queues at and below ROOT, by default /, with holders, waits and rates. It only
reads, and sets no watch.

    zkrecipes top /backups
    zkrecipes top -once -format=json /backups

On a terminal it fills the screen: q or Ctrl-C ends it, the arrow keys scroll, and the
longest waits come first. Elsewhere each change of a wait queue is a line, and in JSON an
object on a line. It shows locks, shared and priority locks, semaphores and elections of
zkrecipes, Curator and kazoo. Queues, groups and other recipes have no waiters to show.

HELD is how long the holder has held, at most. A grant between two readings counts from
the first one. If the first reading found the holder, the time counts from when it joined.
OLDEST is how long the longest waiter has waited. GRANTS/S is the rate over 30 seconds. It
counts sequence numbers, so it includes contenders that left without a grant.
Of priority locks and other libraries' semaphores it counts the holders that it has seen.

ZooKeeper does not tell a client when other sessions end, or from which hosts they come.
With -admin zkrecipes asks the servers. The leader must be among them, and their
configuration must allow it: 4lw.commands.whitelist=cons,dump. ENDING is then the number
of sessions in the wait queue that have missed a ping: less than a third of the session
timeout is left. A session that reconnects in time does not end. HOST is the address of
the holder's client. Without -admin both are unknown and shown as "?". The remaining time
is exact to a second and a tick. A session timeout that no server of -admin knows counts
as the tool's own.

A possible deadlock is a cycle: session A holds X and waits for Y, and B holds Y and waits
for X. It is shown only if a second reading finds the same znodes. It is not a deadlock if
the threads that wait are not those that hold. Elections and semaphores with more than one
permit are left out. A zkrecipes lock in the command of another one has a session of its
own, so a deadlock of such commands is not found.

zkrecipes sends at most -reads requests a second. A wait queue without changes costs one
request a round, another one also one for each contender. With the default, a round over
60,000 contenders takes 20 seconds, and the view shows how old the oldest reading is. A
znode whose name ends like a sequential one (-0123456789) is not searched.

While no server answers, zkrecipes waits, except with -once.

Exit code: 0 after q, Ctrl-C, another signal or -timeout. Otherwise:

    1      zkrecipes failed, for example because it may not read ROOT
    2      wrong usage or configuration, or no wait queue at or below ROOT
    123    ZooKeeper refused the credentials
    124    the time limit passed before all was read (-once)
    141    the reader of the output has exited
    128+n  signal n came with -once, or while no session was open and no screen`,
}

type action struct {
	root     string
	interval time.Duration
	reads    int
	once     bool
	admin    string
}

func (a *action) Flags(f *flag.FlagSet) {
	verb.DurationVar(f, &a.interval, "interval", 2*time.Second, helptext.Common("begin a round after this `duration` at the earliest"))
	f.IntVar(&a.reads, "reads", 3000, "send at most this `number` of requests a second to ZooKeeper")
	f.BoolVar(&a.once, "once", false, helptext.Common("show one round, and exit"))
	f.StringVar(&a.admin, "admin", "", "ask these servers about sessions: `addresses` as host:port, separated by commas")
}

func (a *action) Arguments(args []string) error {
	switch {
	case len(args) > 1:
		return errors.New("give one ROOT, after the flags")
	case a.reads < 1:
		return fmt.Errorf("-reads %d: give at least 1", a.reads)
	case a.interval < 100*time.Millisecond:
		return fmt.Errorf("-interval %v: give at least 100ms", a.interval)
	}
	a.root = "/"
	if len(args) == 1 {
		a.root = args[0]
	}
	if a.admin != "" {
		cfg, err := recipes.SessionConfig{Servers: strings.Split(a.admin, ",")}.Normalize()
		if err != nil {
			return fmt.Errorf("-admin: %w", err)
		}
		a.admin = strings.Join(cfg.Servers, ",")
	}
	return recipes.ValidatePath(a.root)
}

type view interface {
	show(*snapshot) error
}

var errQuit = errors.New("a key has ended the view")

func (a *action) Run(ctx context.Context, given *verb.Tool) error {
	t := *given
	t.Reads = a.reads
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := a.survey(&t)
	if err != nil {
		return err
	}
	var v view = &report{t: &t}
	switch {
	case a.once:
		return verb.Wait(ctx, &t, verb.Patience{Try: true}, verb.Itself, func(ctx context.Context, c recipes.Client) error {
			return s.round(ctx, c, func(n *snapshot) error { return first(n, &table{t: &t}) })
		})
	case verb.Terminal(t.Stdout) && !t.JSON:
		screen, err := openScreen(func() { cancel(errQuit) })
		if err != nil {
			return fmt.Errorf("the terminal cannot show a table: %w; try zkrecipes top | cat, or -once", err)
		}
		defer screen.close()
		t.Stderr, v = screen, screen // stderr is shown on the screen, which it would otherwise destroy
	}
	return a.follow(ctx, &t, s, v)
}

func (a *action) survey(t *verb.Tool) (*survey, error) {
	cfg, err := t.Load()
	if err != nil {
		return nil, err
	}
	s := newSurvey(a.root, asker{word: func(ctx context.Context, server, word string) string {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return verb.AskWord(ctx, cfg.ZooKeeper.TLS, server, word)
	}})
	if a.admin != "" {
		s.asker.servers = strings.Split(a.admin, ",")
	}
	return s, nil
}

// follow shows snapshots until a signal arrives or ctx ends.
func (a *action) follow(ctx context.Context, t *verb.Tool, s *survey, v view) error {
	err := verb.Poll(ctx, t, func(ctx context.Context, c recipes.Client) (time.Duration, error) {
		begun := time.Now()
		err := s.round(ctx, c, func(n *snapshot) error {
			if n.rounds == 1 {
				return first(n, v)
			}
			return v.show(n)
		})
		return a.interval - time.Since(begun), err
	})
	if errors.Is(context.Cause(ctx), errQuit) {
		return nil
	}
	return err
}

// first shows the first round, if it has found a wait queue.
func first(n *snapshot, v view) error {
	if n.whole && len(n.lines) == 0 {
		return exit.Usage("%s", nothing(n))
	}
	return v.show(n)
}

func nothing(n *snapshot) string {
	text := fmt.Sprintf("no wait queue is at or below %s: no contender in %s", n.root, english.Count(n.searched, "znode"))
	if n.unreadable > 0 {
		text += fmt.Sprintf("; %d cannot be read, such as %v", n.unreadable, n.failed)
	}
	return text
}
