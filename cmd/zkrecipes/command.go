package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/posener/complete"

	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// verb is one verb of the tool.
type verb interface {
	describe() doc
	// flags defines the flags that only this verb has.
	flags(*flag.FlagSet)
	// arguments takes what follows the flags. An error is a usage error.
	arguments([]string) error
	// run does what the verb is for. otherwise is the exit code of an error that has
	// none.
	run(ctx context.Context, t *tool, out *output) error
	otherwise() int
}

// resultless is a verb that has no result on stdout: its exit code says it all, or
// stdout is its command's.
type resultless interface{ resultless(json bool) bool }

// exitCodeOnly is a verb without a result, but in JSON; or with one that a caller may
// well drop, as the name of an element that was put. That is not refused, because a
// closed stdout cannot be distinguished from the one that Python's DEVNULL and Node's
// "ignore" give: the null device, opened for reading and writing.
type exitCodeOnly struct{}

func (exitCodeOnly) resultless(json bool) bool { return !json }

// writable refuses to do what has a result that nobody could get: an element would be
// taken from a queue, and be lost.
func (c *command) writable(out *output) error {
	if v, ok := c.verb.(resultless); ok && v.resultless(out.json) {
		return nil
	}
	if f, ok := out.stdout.(*os.File); ok && closed(f) {
		return usage("stdout is closed, and the result could not be written; nothing was done (>/dev/null drops the result)")
	}
	return nil
}

// doc is what the help says about a verb, in this order, before its flags.
type doc struct {
	usage    string    // what follows "zkrecipes" on the command line
	synopsis string    // one line for the list of verbs
	about    string    // what the verb does, in two sentences
	examples [2]string // command lines
	rules    string    // what else one has to know; at the end the exit codes
}

// command is a verb as hashicorp/cli has it.
type command struct {
	tool *tool
	verb verb

	config, format string
	timeout        time.Duration // of a verb that has no such flag itself
	where
}

func (c *command) flagSet() *flag.FlagSet {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.config, "config", "", "`file` with the configuration (HCL); by default $ZKRECIPES_CONFIG, then\n~/.zkrecipes.d/config.hcl; variables such as $ZKRECIPES_SERVERS override it")
	f.StringVar(&c.format, "format", formatText, "`form` of what zkrecipes itself says: text or json")
	c.where.flags(f)
	c.verb.flags(f)
	if f.Lookup("timeout") == nil {
		durationVar(f, &c.timeout, "timeout", 0, "give up, or stop watching, after this `duration`, connecting included; 0: no bound")
	}
	return f
}

// Run implements cli.Command. The arguments begin with the "--" of separate.
func (c *command) Run(args []string) int {
	out := &output{stdout: c.tool.stdout, stderr: c.tool.stderr}
	err := c.run(args[1:], out)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out.stdout, c.Help())
		return exitOK
	}
	exit := code(err, c.verb.otherwise())
	var silent exitError
	if errors.As(err, &silent) && silent.error == nil {
		return exit // a command's own exit code
	}
	out.fail(advised(err), exit)
	return exit
}

func (c *command) run(args []string, out *output) error {
	f := c.flagSet()
	err := f.Parse(args)
	out.json = c.format == formatJSON // also for what is wrong behind it
	switch {
	case err != nil:
		return usage("%w; see -h", err)
	case c.format != formatText && c.format != formatJSON:
		return usage("-format %q: it is text or json", c.format)
	case c.timeout < 0:
		return usage("-timeout must not be negative; see -h")
	}
	if err := cmp.Or(c.where.apply(f), c.verb.arguments(f.Args())); err != nil {
		return usage("%w; see -h", err)
	}
	if err := c.writable(out); err != nil {
		return err
	}
	c.tool.config, c.tool.connectTimeout = c.config, c.connectTimeout
	if c.config != "" { // a command may run zkrecipes too, in another directory
		file, err := filepath.Abs(c.config)
		if err == nil {
			err = os.Setenv(hostconfig.FileEnv, file)
		}
		if err != nil {
			return usage("-config: %w", err)
		}
	}
	ctx, cancel := within(context.Background(), c.timeout)
	defer cancel()
	return c.verb.run(ctx, c.tool, out)
}

// Help implements cli.Command.
func (c *command) Help() string {
	d := c.verb.describe()
	b := &strings.Builder{}
	fmt.Fprintf(b, "Usage: zkrecipes %s\n\n%s\n\nExamples:\n\n", d.usage, strings.TrimSpace(d.about))
	for _, e := range d.examples {
		fmt.Fprintf(b, "    %s\n", e)
	}
	fmt.Fprintf(b, "\n%s\n\nFlags:\n\n", strings.TrimSpace(d.rules))
	f := c.flagSet()
	f.SetOutput(b)
	f.PrintDefaults()
	return strings.TrimRight(b.String(), "\n")
}

// Synopsis implements cli.Command.
func (c *command) Synopsis() string {
	return c.verb.describe().synopsis
}

// AutocompleteFlags implements cli.CommandAutocomplete.
func (c *command) AutocompleteFlags() complete.Flags {
	flags := complete.Flags{}
	c.flagSet().VisitAll(func(f *flag.Flag) {
		var p complete.Predictor = complete.PredictAnything
		switch b, ok := f.Value.(interface{ IsBoolFlag() bool }); {
		case f.Name == "format":
			p = complete.PredictSet(formatText, formatJSON)
		case f.Name == "variant":
			p = complete.PredictSet(string(recipes.AllWatch), string(recipes.CoordinatorOnly), string(recipes.OwnNodes))
		case f.Name == "dialect":
			var names []string
			for _, d := range recipes.Dialects() {
				names = append(names, string(d))
			}
			p = complete.PredictSet(names...)
		case f.Name == "config":
			p = complete.PredictFiles("*.hcl")
		case ok && b.IsBoolFlag():
			p = complete.PredictNothing
		}
		flags["-"+f.Name] = p
	})
	return flags
}
