package look

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
)

var upgradePlugin = verb.Verb{
	Name: "upgrade-plugin", Usage: "[flags] PID...", New: verb.New[upgradeVerb],
	Uses:     []string{"format"},
	Synopsis: "Replace the plugin of running zkrecipes processes",
	Help: `Makes running zkrecipes processes replace their plugin by the one that is installed now.
They keep their locks with the same tokens, and their commands keep running.

    zkrecipes upgrade-plugin 4711
    zkrecipes upgrade-plugin -all

First install the new plugin, by renaming it over the old one. Each process reads its own
configuration again, from its own file and variables, so a checksum there must already be
that of the new plugin.

PID is a zkrecipes that waits or runs a command. -all means all of them, one after the
other. They must run as the user of this command, with the same $XDG_RUNTIME_DIR or
directory for temporary files ($TMPDIR). A process that was stopped (Ctrl-Z) does not
answer: after -timeout the next one has its turn. The stopped one may upgrade when it
continues.

If the new plugin does not start, or cannot take over the sessions now, such as in an
outage, the old one continues. Install the old file again then: after a crash,
zkrecipes starts the installed one.

Windows does not have this verb: start the commands again there.

Exit code: 0 if all of these processes have a new plugin; with -all even if there are none.
Otherwise:

    1    a process has kept its plugin, has lost a session, did not answer, or does not exist
    2    wrong usage, or on Windows; nothing was done`,
}

type upgradeVerb struct {
	all     bool
	timeout time.Duration
	pids    []int
}

func (v *upgradeVerb) Flags(f *flag.FlagSet) {
	f.BoolVar(&v.all, "all", false, helptext.Common("all processes of this user"))
	verb.DurationVar(f, &v.timeout, "timeout", time.Minute, helptext.Common("give up a process that is silent for this `duration`; 0: no limit"))
}

func (v *upgradeVerb) Arguments(args []string) error {
	for _, text := range args {
		pid, err := strconv.Atoi(text)
		if err != nil || pid <= 0 {
			return fmt.Errorf("%q is not the number of a process", text)
		}
		v.pids = append(v.pids, pid)
	}
	switch {
	case !verb.ControlSupported:
		return errors.New("upgrade-plugin does not work on this system: start the commands again")
	case v.all != (len(args) == 0):
		return errors.New("give the numbers of zkrecipes processes, or -all")
	}
	return nil
}

func (v *upgradeVerb) Run(ctx context.Context, t *verb.Tool) (err error) {
	if v.all {
		if v.pids, err = verb.Controlled(); err != nil {
			return err
		}
	}
	done, failed := 0, false
	for _, pid := range v.pids {
		u, err := verb.RequestUpgrade(ctx, pid, v.timeout)
		switch {
		case v.all && errors.Is(err, verb.ErrNoProcess):
			continue // the process was killed, or has ended since
		case err != nil:
			failed = true
			text := strings.Join(strings.Fields(err.Error()), " ")
			t.Fail(fmt.Errorf("process %d: %s", pid, text), exit.Failed)
			continue
		}
		done++
		value := verb.Object{"pid", pid, "old_plugin", u.Old, "new_plugin", u.New}
		if err := t.Line(value, fmt.Sprintf("process %d: plugin %d was replaced by %d", pid, u.Old, u.New)); err != nil {
			return err
		}
	}
	if failed {
		return exit.Silently(exit.Failed)
	}
	if done == 0 {
		t.None("no zkrecipes of this user runs a command or waits")
	}
	return nil
}
