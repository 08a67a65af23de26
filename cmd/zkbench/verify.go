package main

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/verify"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const verifyHelp = `Usage: zkbench verify [flags] COMMAND [ARG...]

Checks a plugin or a host, in any language, against the protocol and the contract of the
recipes. Each part has a line on stdout: pass, FAIL or skip, its name, and the reason.

Examples:

	zkbench verify ./my-plugin
	zkbench verify -host python3 my_host.py
	zkbench verify -run '^protocol/' java -jar my-plugin.jar
	zkbench verify -run 'contract/(lock|queue)/' ./my-plugin

Rules:

	The parts protocol/... are promises of plugin/proto/PROTOCOL.md, and contract/... those
	of package recipes. A part is skipped if it needs a capability that the plugin lacks.
	With -host the command is a small program over the host. It does steps, such as
	"acquire a /path", that it reads from stdin. PROTOCOL.md, "Verification of a host", lists
	them. The plugin and the servers are those of zkbench, and cause the faults.
	Flags come before the command. PROTOCOL.md, "Verification", says what is not covered.

Exit codes:

	0    no part failed
	1    a part failed
	2    the flags cannot be used, or the command is not a plugin
	130  interrupted`

func (c command) verifyVerb(ctx context.Context, args []string) error {
	o := verify.Options{}
	f := flag.NewFlagSet("zkbench verify", flag.ContinueOnError)
	f.Func("run", helptext.Common("check only the parts whose name matches this `regexp`"), func(s string) (err error) {
		o.Only, err = regexp.Compile(s)
		return err
	})
	host := f.Bool("host", false, helptext.Common("check a host: the command does steps that it reads from stdin"))
	servers := f.String("servers", "", helptext.Common("connect `string` of the servers for the contract, by default one in this process;\ngo doc recipes/recipestest says how to configure them"))
	f.DurationVar(&o.Limit, "limit", time.Minute, "longest `time` that a part may take")
	f.IntVar(&o.Parallel, "parallel", 16, "`number` of parts at the same time")
	if err := c.parse(f, verifyHelp, args); err != nil {
		return err
	}
	switch {
	case f.NArg() == 0:
		return exit.Usage(fmt.Errorf("no command to check; give a plugin, such as zkbench verify ./zkrecipes-plugin, or -host and a host"))
	case o.Limit <= 0 || o.Parallel < 1:
		return exit.Usage(fmt.Errorf("-limit and -parallel must be positive"))
	case *host && *servers != "":
		return exit.Usage(fmt.Errorf("-servers cannot be used with -host, which needs servers that fail when it wants"))
	}
	path, err := exec.LookPath(f.Arg(0))
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return exit.Usage(err)
	}
	o.Command = append([]string{path}, f.Args()[1:]...)
	if *servers != "" {
		list, chroot, err := recipes.ParseConnectString(*servers)
		if err != nil {
			return exit.Usage(err)
		}
		if chroot != "" {
			return exit.Usage(fmt.Errorf("-servers: the contract uses the root, not the chroot %s", chroot))
		}
		o.Servers = list
	}
	if *host {
		return c.verify(ctx, o, verify.Host)
	}
	return c.verify(ctx, o, verify.Plugin)
}

type verifier func(ctx context.Context, o verify.Options, yield func(done, of int, r verify.Result)) error

func (c command) verify(ctx context.Context, o verify.Options, check verifier) error {
	_, terminal := c.terminal(c.stderr)
	var passed, failed, skipped int
	var unwritten error
	err := check(ctx, o, func(done, of int, r verify.Result) {
		switch {
		case len(r.Failures) > 0:
			failed++
		case r.Skipped != "":
			skipped++
		default:
			passed++
		}
		if terminal {
			fmt.Fprint(printable.Below(c.stderr), "\r\x1b[K")
		}
		if _, err := fmt.Fprintln(c.stdout, r); err != nil {
			unwritten = err
		}
		if terminal && done < of {
			fmt.Fprintf(printable.Below(c.stderr), "%d of %d, %d failed", done, of, failed)
		}
	})
	switch {
	case ctx.Err() != nil:
		return &exit.Interruption{Why: fmt.Errorf("after %s", english.Count(passed+failed+skipped, "part"))}
	case err != nil:
		return exit.Usage(err)
	case unwritten != nil:
		return unwritten
	}
	c.say("%d passed, %d failed, %d skipped", passed, failed, skipped)
	if failed > 0 {
		return exit.Answer(exit.Failed)
	}
	return nil
}
