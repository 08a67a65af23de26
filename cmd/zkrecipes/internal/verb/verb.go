// Package verb contains the code that the verbs of zkrecipes share: their declaration, flags,
// sessions through the plugin, waits and output.
//
//  1. A [Verb] is a package variable, listed in the table Verbs of its package.
//  2. Each call creates its [Action], which takes flags and arguments, and runs.
//  3. An action that sends one request uses [Once] or [Ask]. One that waits uses [Wait] or
//     [WaitFor], and one that watches uses [Follow] or [Poll].
//  4. It writes with the methods of [Tool], and returns an error of package exit.
package verb

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	gopath "path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/posener/complete"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Verb is one verb of the tool.
type Verb struct {
	Name     string // one word, or two
	Usage    string // flags and arguments, for the first line of the help
	Synopsis string // one line for the list of verbs
	// Help begins with two sentences on what the verb does. Two examples follow, then the
	// rules, and at the end the exit codes. -h leaves the rules out, and cuts what an exit
	// code means at the first punctuation mark.
	Help string
	New  func() Action

	// Uses names the flags of all verbs that this one has. nil is all: a flag that a verb ignores
	// must not be accepted.
	Uses []string

	Otherwise int // the exit code of an error without one; 0 is exit.Failed
	// ExitCodeOnly means that the verb runs with a closed stdout too, except with -format=json.
	// As text it writes no result, or one that callers often drop, such as the name of an
	// element. Python's DEVNULL and Node's "ignore" make stdout the null device, opened for
	// reading and writing, and that cannot be distinguished from a closed stdout.
	ExitCodeOnly bool
}

// Action is one call of a verb. An action may have a method Resultless() bool, which
// reports that it writes no result because stdout belongs to a command.
type Action interface {
	// Flags defines the flags that only this verb has.
	Flags(*flag.FlagSet)
	// Arguments takes the arguments after the flags. Its error is a usage error.
	Arguments([]string) error
	Run(context.Context, *Tool) error
}

// New creates an action: a value for the field of that name.
func New[T any, A interface {
	*T
	Action
}]() Action {
	return A(new(T))
}

// Command is one call of a verb. It implements cli.Command.
type Command struct {
	Tool *Tool
	Verb
	Action

	format  string
	timeout time.Duration // of a verb without a -timeout of its own
	where
}

// FlagSet defines the verb's flags, and those of all verbs that it uses.
func (c *Command) FlagSet() *flag.FlagSet {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	c.Flags(f)
	c.shared().VisitAll(func(s *flag.Flag) {
		if f.Lookup(s.Name) == nil && (c.Uses == nil || slices.Contains(c.Uses, s.Name)) {
			f.Var(s.Value, s.Name, s.Usage)
		}
	})
	return f
}

// shared returns the flags of all verbs. They get their defaults even if the verb does not use
// them.
func (c *Command) shared() *flag.FlagSet {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.StringVar(&c.format, "format", formatText, helptext.Common("text or json: the `form` of zkrecipes's own output"))
	c.where.flags(f)
	DurationVar(f, &c.timeout, "timeout", 0, helptext.Common("give up or stop watching after this `duration`, including the time to connect; 0: no\nlimit"))
	return f
}

// Run implements cli.Command. The arguments begin with "--", which ends the library's flags.
func (c *Command) Run(args []string) int {
	err := c.run(args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(c.Tool.Stdout, c.Help())
		return exit.OK
	}
	code := exit.Code(err, cmp.Or(c.Otherwise, exit.Failed))
	if e, ok := errors.AsType[exit.Error](err); err != nil && (!ok || e.Err != nil) { // otherwise it was printed, or the exit code is the command's
		if advice := exit.Advice(err); advice != "" {
			err = fmt.Errorf("%w; %s", err, advice)
		}
		c.Tool.Fail(err, code)
	}
	return code
}

func (c *Command) run(args []string) error {
	f := c.FlagSet()
	err := f.Parse(args)
	c.Tool.JSON = c.format == formatJSON // before the error of a later flag is written
	switch {
	case err != nil:
		return c.misused(err)
	case c.format != formatText && c.format != formatJSON:
		return exit.Usage("-format %q: it is text or json", c.format)
	}
	if err := cmp.Or(c.where.apply(f), c.Arguments(f.Args())); err != nil {
		return c.misused(err)
	}
	if err := c.writable(); err != nil {
		return err
	}
	c.Tool.where = c.where
	if c.config != "" { // the command may run zkrecipes in another directory
		file, err := filepath.Abs(c.config)
		if err == nil {
			err = os.Setenv(hostconfig.FileEnv, file)
		}
		if err != nil {
			return exit.Usage("-config: %w", err)
		}
	}
	ctx, cancel := within(context.Background(), c.timeout)
	defer cancel()
	return c.Action.Run(ctx, c.Tool)
}

func (c *Command) misused(err error) error {
	return exit.Usage("%w; see -h, or zkrecipes help %s", err, c.Name)
}

// writable refuses an action whose result cannot be written. Otherwise an element could be
// taken from a queue and lost.
func (c *Command) writable() error {
	v, ok := c.Action.(interface{ Resultless() bool })
	resultless := ok && v.Resultless() || c.ExitCodeOnly && !c.Tool.JSON
	if f, ok := c.Tool.Stdout.(*os.File); ok && !resultless && closed(f) {
		return exit.Usage("stdout is closed, so the result cannot be written; nothing was done (>/dev/null drops the result)")
	}
	return nil
}

// Help implements cli.Command. It is what -h prints, and fits on a screen.
func (c *Command) Help() string { return helptext.Short("zkrecipes", c.Name, c.text(), c.FlagSet()) }

// LongHelp returns the whole help, with all rules and flags.
func (c *Command) LongHelp() string { return helptext.Long(c.text(), c.FlagSet()) }

func (c *Command) text() string {
	about, rest, _ := strings.Cut(strings.TrimSpace(c.Verb.Help), "\n\n")
	return fmt.Sprintf("Usage: zkrecipes %s %s\n\n%s\n\nExamples:\n\n%s", c.Name, c.Usage, about, rest)
}

// Synopsis implements cli.Command.
func (c *Command) Synopsis() string { return c.Verb.Synopsis }

// flags completes flags, and the values of some.
func (c *Command) flags() complete.Flags {
	flags := complete.Flags{}
	c.FlagSet().VisitAll(func(f *flag.Flag) {
		var p complete.Predictor = complete.PredictAnything
		switch b, ok := f.Value.(interface{ IsBoolFlag() bool }); {
		case f.Name == "format":
			p = complete.PredictSet(formatText, formatJSON)
		case f.Name == "variant":
			p = complete.PredictSet(string(recipes.AllWatch), string(recipes.CoordinatorOnly), string(recipes.OwnNodes))
		case f.Name == "dialect":
			p = complete.PredictSet(List(recipes.Dialects(), func(d recipes.Dialect) string { return string(d) })...)
		case f.Name == "config":
			p = complete.PredictFiles("*.hcl")
		case ok && b.IsBoolFlag():
			p = complete.PredictNothing
		}
		flags["-"+f.Name] = p
	})
	return flags
}

// CompletionTime bounds the completion of PATH, because the user waits for it at the prompt.
const CompletionTime = 300 * time.Millisecond

// Completion returns what completes the flags and arguments of the verb.
func (c *Command) Completion() complete.Command {
	return complete.Command{Flags: c.flags(), Args: c.arguments()}
}

// arguments completes PATH from the servers.
func (c *Command) arguments() complete.Predictor {
	if !strings.Contains(" "+c.Usage, " PATH") && !strings.Contains(c.Usage, "[ROOT]") {
		return complete.PredictNothing
	}
	return complete.PredictFunc(func(a complete.Args) []string { return c.paths(a.Completed, a.Last) })
}

// paths returns the paths that begin with word, the first argument after the flags. It
// returns none if the servers do not answer in time.
func (c *Command) paths(before []string, word string) []string {
	f := c.FlagSet()
	f.Init("", flag.ContinueOnError)
	if !strings.HasPrefix(word, "/") || slices.Contains(before, "--") ||
		f.Parse(before) != nil || f.NArg() > 0 || c.where.apply(f) != nil {
		return nil
	}
	quiet := *c.Tool
	quiet.where, quiet.Stdout, quiet.Stderr = c.where, io.Discard, io.Discard
	dir := gopath.Dir(word) // of "/a/" it is "/a"
	var found []string
	for _, name := range quiet.children(dir) {
		if path := gopath.Join(dir, name); strings.HasPrefix(path, word) && recipes.ValidatePath(path) == nil {
			found = append(found, path)
		}
	}
	return found
}

// ofRecipes matches znodes that recipes create below a path.
var ofRecipes = regexp.MustCompile(`^_c_|-?[0-9]{10}$`)

// children returns the names of the znodes below path, without those of recipes.
func (t *Tool) children(path string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), CompletionTime)
	defer cancel()
	answered := make(chan []string, 1)
	go func() { // ends within the time, or with this process
		defer close(answered)
		c := &connection{Tool: t}
		answered <- c.children(ctx, path)
		if c.plugin != nil {
			_ = c.plugin.Close(ctx)
		}
	}()
	var found []string
	for {
		select {
		case names, more := <-answered:
			if !more {
				return found
			}
			found = names
		case <-ctx.Done():
			return found
		}
	}
}

func (c *connection) children(ctx context.Context, path string) []string {
	s, err := c.open(ctx)
	if err != nil {
		return nil
	}
	names, err := s.Children(ctx, path)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, ofRecipes.MatchString)
}
