package look

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var doctor = verb.Verb{
	Name: "doctor", Usage: "[flags] [PATH...]", New: verb.New[doctorVerb],
	Synopsis: "Check configuration, plugin and ZooKeeper",
	Help: `Checks the configuration, the plugin and each ZooKeeper server. It says what to do
about each problem, and with PATH who stands in line there.

    zkrecipes doctor
    zkrecipes doctor -read-only /backups/db1

Of the plugin it checks where it is, who may change it, its checksum, its start and its
version. Of each server it checks, one by one, that a session can be opened and a lock
taken, and whether its clock is right. Of several servers it compares the smallest
session timeouts that they grant. It does not see those of servers that are not configured.

The lock is taken at /zkrecipes-doctor, below the chroot. It leaves an empty znode at
most, which ZooKeeper removes where it knows containers.

Of each PATH it says which contenders stand there, and for each recipe and -dialect whether
it would share their wait queue or be refused: that is what lock and elect would do. It
counts ephemeral sequential znodes with names that no recipe has. These may be
contenders that look for none of ours, and ours look for none of them.

There is no support for SASL, and so for Kerberos, nor for ZooKeeper before 3.5. Sessions
authenticate by digest, or by a certificate.

Exit code: 0 if no check failed, though some may have warned; otherwise:

    1    a check failed
    2    wrong usage`,
}

type doctorVerb struct {
	readOnly bool
	paths    []string
	findings []finding
	unpinned string // how to pin the plugin that lies beside this program, if it is not
}

// finding is the answer of one check.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warn, fail
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`
}

const (
	fine = "ok"
	warn = "warn"
	fail = "fail"
)

func (v *doctorVerb) Flags(f *flag.FlagSet) {
	f.BoolVar(&v.readOnly, "read-only", false, "take no lock: then nothing is written, and clocks are not checked")
}

func (v *doctorVerb) Arguments(args []string) error {
	v.paths = args
	for _, path := range args {
		if err := recipes.ValidatePath(path); err != nil {
			return err
		}
	}
	return nil
}

func (v *doctorVerb) Run(ctx context.Context, t *verb.Tool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	v.findings = []finding{}
	v.examine(ctx, t)
	failed := slices.ContainsFunc(v.findings, func(f finding) bool { return f.Status == fail })
	if err := t.Result(verb.Object{"ok", !failed, "checks", v.findings}, verb.Table("", v.findings, finding.row)); err != nil {
		return err
	}
	if failed {
		return exit.Silently(exit.Failed) // the table has said it
	}
	return nil
}

func (v *doctorVerb) found(check, status, advice, format string, args ...any) {
	v.findings = append(v.findings, finding{check, status, fmt.Sprintf(format, args...), advice})
}

func (f finding) row() string {
	row := fmt.Sprintf("%s\t%s\t%s", f.Status, f.Check, strings.ReplaceAll(f.Detail, "\n", "\n\t\t"))
	if f.Advice != "" {
		row += "\n\t\t-> " + strings.ReplaceAll(strings.TrimSpace(f.Advice), "\n", "\n\t\t   ")
	}
	return row
}

// examine checks one thing after the other, up to one without which the rest
// cannot be checked.
func (v *doctorVerb) examine(ctx context.Context, t *verb.Tool) {
	cfg, err := t.Load()
	if err != nil {
		v.found("configuration", fail, "correct it; zkrecipes reads ZKRECIPES_CONFIG, or ~/.zkrecipes.d/config.hcl", "%v", err)
		return
	}
	v.configuration(cfg)
	if !v.plugin(&cfg.Plugin, t.Config()) {
		return
	}
	start := time.Now()
	p, err := host.Launch(ctx, cfg.Plugin)
	if err != nil {
		v.found("start", fail, "run it yourself: "+cfg.Plugin.Path+" -version; it must be built for this system", "%v", err)
		return
	}
	defer v.end(p)
	v.found("start", fine, "", "ready after %v, process %d", time.Since(start).Round(time.Millisecond), p.PID())
	v.version(ctx, p)
	for _, server := range cfg.ZooKeeper.Servers {
		v.server(ctx, p, cfg.ZooKeeper, server)
	}
	if len(cfg.ZooKeeper.Servers) > 1 {
		v.timeouts(leastTimeouts(ctx, p.Open, cfg.ZooKeeper), cfg.ZooKeeper.SessionTimeout)
	}
	if len(v.paths) > 0 {
		v.lines(ctx, p, cfg.ZooKeeper)
	}
}

func (v *doctorVerb) configuration(cfg hostconfig.Config) {
	from := "no file"
	if cfg.File != "" {
		from = cfg.File
	}
	if len(cfg.Variables) > 0 {
		from = fmt.Sprintf("%s and %v", from, cfg.Variables)
	}
	v.found("configuration", fine, "", "from %s", from)
	if zk := cfg.ZooKeeper; zk.Digest != nil && len(zk.ACL) == 0 {
		v.found("acl", warn, `set acl = "creator" in the zookeeper block`, "sessions authenticate, but whoever reaches ZooKeeper may change what they create")
	}
}

// end closes the plugin, which is a check too.
func (v *doctorVerb) end(p *host.Plugin) {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		v.found("end", warn, "", "%v", err)
	}
}
