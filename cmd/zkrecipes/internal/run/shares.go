package run

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Further variables of the command of shares.
const (
	sharesEnv     = "ZKRECIPES_SHARES"      // the numbers, with commas
	sharesFileEnv = "ZKRECIPES_SHARES_FILE" // with -hangup: a file that has them
)

var shares = verb.Verb{
	Name: "shares", Usage: "[flags] PATH -- COMMAND [ARGUMENT...]", New: verb.New[sharesVerb], Otherwise: exit.Own,
	Synopsis: "Run a command for a part of the numbers 0 to n-1",
	Help: `Spreads the numbers from 0 to n-1 over the members of PATH, such as the shards of a store
over its workers. Runs the command with this member's numbers, and again when they change.

    zkrecipes shares -n 16 /shards -- ./work
    zkrecipes shares -n 16 -hangup /shards -- ./serve

$ZKRECIPES_SHARES has the numbers, such as 0,3,7. Each number belongs to one member at a
time, and the members have equal parts, or one number more. All members must give the
same -n: another one is refused with exit code 125.

When the numbers change, the command gets TERM, and KILL after -grace. When all its
processes have ended, the numbers that move are given up, and the command is started
again with the numbers that are left. Without numbers no command runs.

With -hangup the command is not ended. $ZKRECIPES_SHARES_FILE is the name of a file with
the numbers; when they change, the file is replaced and the command gets HUP. It has
-grace to finish with the numbers that are missing in the file. Then other members get
them. The file may be empty. The command must handle HUP from its beginning. If the file
cannot be written, the command is ended.

$ZKRECIPES_TOKENS has the fencing token of each number, as a JSON object, and
$ZKRECIPES_PATH is PATH. Send the token with each write for a number, so that the
receiver can refuse a token smaller than the largest that it has seen for that number.

zkrecipes passes signals on to the command, and leaves when the command has ended. A
lost session is not replaced: the command gets TERM, and KILL after -grace. zkrecipes
group members PATH/members lists the members, zkrecipes names list PATH/numbers who owns
which number.

Exit code: the command's, or 128+n if signal n ended the command or the wait before it.
Otherwise:

    2    wrong usage or configuration; nothing was done
    123  the numbers were lost, whatever the command returned
    124  no member assigns numbers within -timeout although ZooKeeper answers
    125  zkrecipes failed, for example to reach ZooKeeper
    126  the command cannot be run
    127  the command was not found`,
}

type sharesVerb struct {
	guard
	n      int
	hangup bool

	file    string
	owned   map[recipes.Token]recipes.Share // received and not yet given up
	running *job.Job
	tokens  map[int]recipes.Token // of the numbers that the command was last started with, or notified of
}

func (v *sharesVerb) Flags(f *flag.FlagSet) {
	verb.DurationVar(f, &v.timeout, "timeout", 0, helptext.Common("give up if no numbers are assigned within this `duration`, including the time to connect;\n0 waits for ever"))
	v.graceFlag(f)
	v.closeFlag(f)
	f.StringVar(&v.data, "data", "", "`text` that others see; by default this host, process and command")
	f.IntVar(&v.n, "n", 0, helptext.Common("spread this `number` of numbers"))
	f.BoolVar(&v.hangup, "hangup", false, helptext.Common("send HUP instead of starting the command again, and write the numbers to a file"))
}

func (v *sharesVerb) Arguments(args []string) (err error) {
	if len(args) > 2 && args[1] == "-n" { // after PATH
		if v.n, err = strconv.Atoi(args[2]); err != nil {
			return fmt.Errorf("-n %q is not a number", args[2])
		}
		args = append(args[:1:1], args[3:]...)
	}
	if err := v.guard.Arguments(args); err != nil {
		return err
	}
	if v.n == 0 {
		return errors.New("-n is missing: it is how many numbers there are, the same for all members")
	}
	return v.config().Validate(v.n)
}

// config leaves it to the verb when a number is given up. A limit of the library's could pass
// while the command runs.
func (v *sharesVerb) config() recipes.SharesConfig {
	return recipes.SharesConfig{Grace: math.MaxInt64, Data: []byte(v.data), Warn: func(err error) {
		v.t.Event(verb.Event{Event: "warning", Path: v.path, Cause: err.Error()}, err.Error())
	}}
}

func (v *sharesVerb) Run(ctx context.Context, t *verb.Tool) (err error) {
	ctx, end, err := v.begin(ctx, t)
	if err != nil {
		return err
	}
	defer end()
	if v.hangup {
		dir, err := os.MkdirTemp("", "zkrecipes-shares-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		v.file = filepath.Join(dir, "shares")
	}
	v.owned = make(map[recipes.Token]recipes.Share)
	p := verb.Patience{Timeout: v.timeout, Failure: "no numbers of " + v.path + " were assigned"}
	return verb.Await(ctx, t, p, func(ctx context.Context, s recipes.Client) (recipes.Portion, error) {
		shares, err := s.Shares(v.path, v.n, v.config())
		if err != nil {
			return nil, err
		}
		return shares.Join(ctx)
	}, func(p recipes.Portion) error { return v.work(ctx, p) })
}

// work runs the command with the numbers of p until the command ends by itself, a signal arrives
// or the numbers are lost.
func (v *sharesVerb) work(ctx context.Context, p recipes.Portion) error {
	for {
		exited, interrupted := (<-chan struct{})(nil), ctx.Done()
		if v.running != nil {
			exited, interrupted = v.running.Exited(), nil // the command gets the signals
		}
		select {
		case list, ok := <-p.Changes():
			if !ok || p.Err() != nil {
				return v.lost(p)
			}
			select {
			case <-exited: // by itself: do not start it again
				continue
			default:
			}
			if code, ended := v.change(&ctx, p, list); ended {
				return v.leave(p, code)
			}
		case <-exited:
			if v.running.Signaled() {
				v.running.Await(v.grace, v.killing(), nil)
			}
			return v.leave(p, v.running.ExitCode())
		case <-p.Done():
			return v.lost(p)
		case <-interrupted:
			return v.leave(p, signalOf(ctx).ExitCode())
		}
	}
}

func signalOf(ctx context.Context) job.Interruption {
	signal, _ := errors.AsType[job.Interruption](context.Cause(ctx))
	return signal
}

// lost ends the command after the loss of the session or of the member.
func (v *sharesVerb) lost(p recipes.Portion) error {
	v.t.Event(verb.Event{Event: "lost", Path: v.path, Cause: fmt.Sprint(p.Err())},
		fmt.Sprintf("lost the numbers of %s, ending the command: %v", v.path, p.Err()))
	if v.running != nil {
		v.running.End(v.grace, v.killing(), nil)
	}
	if v.t.JSON { // it gets an object with the exit code too
		return exit.With(exit.Lost, "the numbers of %s were lost: %w", v.path, p.Err())
	}
	return exit.Silently(exit.Lost)
}

// change passes the numbers of the list to the command. ended means that the command, which
// returned code, is not to be started again.
func (v *sharesVerb) change(ctx *context.Context, p recipes.Portion, list []recipes.Share) (code int, ended bool) {
	v.receive(list)
	tokens := tokensOf(list)
	if v.running != nil && maps.Equal(tokens, v.tokens) {
		return 0, false // it was started with a later list than the one before
	}
	if !v.hangup {
		if code, ended := v.stop(ctx, p); ended {
			return code, true
		}
		if p.Err() != nil {
			return 0, false
		}
		// While the command ended, other members may have joined.
		tokens = tokensOf(v.newest(p, list))
		releaseShares(v.except(tokens))
	}
	text := ""
	for _, number := range slices.Sorted(maps.Keys(tokens)) {
		text += "," + strconv.Itoa(number)
	}
	text = strings.TrimPrefix(text, ",")
	v.t.Event(verb.Event{Event: "owns", Path: v.path, Shares: text}, "")
	v.tokens = tokens
	if v.hangup {
		return v.hangUp(ctx, p, text)
	}
	if len(tokens) == 0 {
		return 0, false
	}
	return v.start(p, text)
}

// receive adds the shares that must be given up later, and drops those that were.
func (v *sharesVerb) receive(list []recipes.Share) {
	maps.DeleteFunc(v.owned, func(_ recipes.Token, s recipes.Share) bool { return s.Err() != nil })
	for _, share := range list {
		v.owned[share.Token()] = share
	}
}

// newest returns the latest list of p without the shares that were revoked since. If p has no later
// list, it starts from list.
func (v *sharesVerb) newest(p recipes.Portion, list []recipes.Share) []recipes.Share {
	select {
	case later, ok := <-p.Changes():
		if ok {
			list = later
			v.receive(list)
		}
	default:
	}
	return slices.DeleteFunc(slices.Clone(list), func(s recipes.Share) bool {
		select {
		case <-s.Revoked():
			return true
		default:
			return false
		}
	})
}

func tokensOf(list []recipes.Share) map[int]recipes.Token {
	tokens := make(map[int]recipes.Token)
	for _, share := range list {
		tokens[share.Number()] = share.Token()
	}
	return tokens
}

// start starts the command with the numbers of v.tokens. The results are those of change.
func (v *sharesVerb) start(p recipes.Portion, text string) (code int, ended bool) {
	inJSON, _ := json.Marshal(v.tokens) // a map of numbers has no error
	env := []string{pathEnv + "=" + v.path, sharesEnv + "=" + text, tokensEnv + "=" + string(inJSON), sharesFileEnv + "=" + v.file}
	if v.hangup && signal.Ignored(syscall.SIGHUP) {
		// Under nohup the command would inherit that HUP is ignored, and continue with numbers
		// that are given up. A caught signal is not inherited as ignored, so this process
		// catches HUP and drops it.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	j, err := v.relay.Start(v.program, v.argv, env, v.life, func() bool { return p.Err() == nil })
	if err != nil {
		v.t.Event(verb.Event{Event: "failed", Path: v.path, Cause: err.Error()}, fmt.Sprintf("command %s: %v", v.argv[0], err))
		return exit.Cannot, true
	}
	v.running = j
	stop := v.reportDenied(j)
	go func() {
		<-j.Exited()
		stop()
	}()
	return 0, false
}

// hangUp starts the command, or makes it read the numbers in the file. What is missing there is
// given up after -grace. Without a new file the command would continue after that, so it is
// ended.
func (v *sharesVerb) hangUp(ctx *context.Context, p recipes.Portion, text string) (code int, ended bool) {
	if err := verb.Replace(v.file, []byte(text+"\n"), 0o600); err != nil {
		v.t.Event(verb.Event{Event: "unwritten", Path: v.path, Cause: err.Error()}, fmt.Sprintf("the numbers could not be written to the file, ending the command: %v", err))
		if code, ended := v.stop(ctx, p); ended {
			return code, true
		}
		return exit.Own, true
	}
	if v.running == nil {
		return v.start(p, text)
	}
	v.running.Pass(syscall.SIGHUP)
	missing := v.except(v.tokens)
	time.AfterFunc(v.grace, func() { releaseShares(missing) })
	return 0, false
}

// stop ends the command, if it runs, and waits for all its processes. The next signal then ends ctx.
// ended means that a signal has ended the command or the wait.
func (v *sharesVerb) stop(ctx *context.Context, p recipes.Portion) (code int, ended bool) {
	if v.running == nil {
		return 0, false
	}
	j := v.running
	j.End(v.grace, v.killing(), nil)
	*ctx = v.relay.Interruptible(context.Background())
	v.running = nil
	if code = j.ExitCode(); v.relay.Ended(code) {
		return code, true
	}
	report := time.NewTimer(v.grace)
	defer report.Stop()
	for {
		select {
		case <-j.Gone():
			return code, false
		case <-p.Done():
			return code, false
		case <-(*ctx).Done():
			return signalOf(*ctx).ExitCode(), true
		case <-report.C:
			v.t.Event(verb.Event{Event: "left", Path: v.path}, "the command is not started again before another process that it has started has ended")
		}
	}
}

// except returns what is owned and not kept.
func (v *sharesVerb) except(kept map[int]recipes.Token) (others []recipes.Share) {
	for token, share := range v.owned {
		if kept[share.Number()] != token {
			others = append(others, share)
		}
	}
	return others
}

// releaseShares releases shares that no process works for.
func releaseShares(all []recipes.Share) {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	for _, share := range all {
		_ = share.Release(ctx) // after an error it is given up in the background, or with the session
	}
}

// leave gives up all numbers, when the command has ended.
func (v *sharesVerb) leave(p recipes.Portion, code int) error {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	left := make(chan error, 1)
	go func() { left <- p.Leave(ctx) }()
	<-p.Done() // so that what is released is not taken again
	releaseShares(v.except(nil))
	if err := <-left; err != nil {
		v.t.Event(verb.Event{Event: "unreleased", Path: v.path, Cause: err.Error()},
			fmt.Sprintf("the numbers of %s could not be given up at once; they are free at the session timeout at the latest: %v", v.path, err))
	} else {
		v.t.Event(verb.Event{Event: "released", Path: v.path}, "")
	}
	return exit.Silently(code)
}
