package look

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/version"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var doctor = verb.Verb{
	Name: "doctor", Usage: "[flags] [PATH...]", New: verb.New[doctorVerb],
	// Not connect-timeout: serverTimeout bounds all checks of a server.
	Uses:     []string{"format", "config", "servers", "chroot", "session-timeout", "timeout"},
	Synopsis: "Check configuration, plugin and ZooKeeper",
	Help: `Checks the configuration, the plugin and each ZooKeeper server, and with PATH the
contenders there. It prints what to do about each problem.

    zkrecipes doctor
    zkrecipes doctor -read-only /backups/db1

The checks of the plugin are its location, its permissions, its checksum, its start and
its version. The checks of each server are a session, a lock and the clock. If the server answers
conf (4lw.commands.whitelist), doctor also compares the session timeout with its tick. It
does not know servers that are not configured.

The lock is acquired at /zkrecipes-doctor, below the chroot. At most it leaves an empty
znode, which the server deletes if it supports containers.

For each PATH, doctor shows the contenders there. For each recipe and -dialect it shows
whether lock and elect would share their wait queue or refuse the path. It counts the
ephemeral sequential znodes whose names belong to no recipe: they may be contenders of
another program, which ignores ours, as ours ignore them.

Use ZooKeeper 3.6 or later; docs/servers.md lists what you lose on older ones, and on
ClickHouse Keeper, for which doctor warns. Sessions
authenticate by SASL (Kerberos or DIGEST-MD5), by digest or by a certificate.

Exit code: 0 if no check failed, even if some gave a warning. Otherwise:

    1    a check failed
    2    wrong usage`,
}

type doctorVerb struct {
	readOnly bool
	paths    []string
	findings []finding
	unpinned string // advice for an installed plugin without a checksum: how to pin it; otherwise ""
}

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
	f.BoolVar(&v.readOnly, "read-only", false, helptext.Common("acquire no lock: nothing is written, and clocks are not checked"))
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
	v.findings = []finding{}
	v.examine(ctx, t)
	failed := slices.ContainsFunc(v.findings, func(f finding) bool { return f.Status == fail })
	var rows [][]string
	for _, f := range v.findings {
		rows = append(rows, f.rows()...)
	}
	if err := t.Result(verb.Object{"ok", !failed, "checks", v.findings}, verb.Table("", rows, func(row []string) []string { return row })); err != nil {
		return err
	}
	if failed {
		return exit.Silently(exit.Failed) // the table shows it
	}
	return nil
}

func (v *doctorVerb) found(check, status, advice, format string, args ...any) {
	v.findings = append(v.findings, finding{check, status, fmt.Sprintf(format, args...), advice})
}

// rows returns the rows of a table with three columns. A last cell of several lines takes a row for
// each line.
func (f finding) rows() (rows [][]string) {
	text := f.Detail
	if f.Advice != "" {
		text += "\n-> " + strings.ReplaceAll(strings.TrimSpace(f.Advice), "\n", "\n   ")
	}
	for i, line := range strings.Split(text, "\n") {
		row := []string{"", "", line}
		if i == 0 {
			row[0], row[1] = f.Status, f.Check
		}
		rows = append(rows, row)
	}
	return rows
}

// examine runs the checks in order. It stops at a failure without which the rest cannot be
// checked.
func (v *doctorVerb) examine(whole context.Context, t *verb.Tool) {
	ctx, cancel := context.WithTimeout(whole, time.Minute)
	defer cancel()
	cfg, err := t.Load()
	if err != nil {
		v.found("configuration", fail, "correct it; zkrecipes reads the file in ZKRECIPES_CONFIG, or ~/.zkrecipes.d/config.hcl", "%v", err)
		return
	}
	v.configuration(cfg, t.Sources(cfg))
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
	if cfg.ZooKeeper.SessionTimeout == 0 {
		normal, _ := cfg.ZooKeeper.Normalize() // hostconfig.Load has checked it
		cfg.ZooKeeper.SessionTimeout = normal.SessionTimeout
	}
	var reached []string
	for _, server := range cfg.ZooKeeper.Servers {
		if v.server(ctx, p, cfg.ZooKeeper, server) {
			reached = append(reached, server)
		}
	}
	if len(v.paths) > 0 {
		v.lines(whole, p, cfg.ZooKeeper, reached)
	}
}

func (v *doctorVerb) configuration(cfg hostconfig.Config, overrides []string) {
	from := cmp.Or(cfg.File, "no file")
	if len(overrides) > 0 {
		from = fmt.Sprintf("%s and %v", from, overrides)
	}
	v.found("configuration", fine, "", "from %s", from)
	if zk := cfg.ZooKeeper; (zk.Digest != nil || zk.SASL != nil) && len(zk.ACL) == 0 {
		v.found("acl", warn, `set acl = "creator" in the zookeeper block`, "sessions authenticate, but every client of ZooKeeper may change what they create")
	}
}

func (v *doctorVerb) end(p *host.Plugin) {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		v.found("end", warn, "", "%v", err)
	}
}

// plugin checks the plugin executable, and reports whether it can be started. It stores the
// path of the executable in cfg.
func (v *doctorVerb) plugin(cfg *host.Config, file string) bool {
	installed := cfg.Path != "" || cfg.Dir != "" || os.Getenv(host.PluginDirEnv) != "" // at a configured place, or beside this program
	if cfg.Path == "" {
		path, err := host.Find(cfg.Dir)
		if err != nil {
			v.found("plugin", fail, adviceFor(err), "%v", err)
			return false
		}
		cfg.Path, installed = path, installed || besideThisProgram(path)
	}
	sum, err := host.Checksum(cfg.Path)
	if err != nil {
		v.found("plugin", fail, "correct plugin { command } or ZKRECIPES_PLUGIN_COMMAND", "%v", err)
		return false
	}
	v.found("plugin", fine, "", "%s", cfg.Path)
	got := hex.EncodeToString(sum[:])
	if cfg.Checksum == "" { // Launch would repeat the warning
		cfg.Logger.SetLevel(max(cfg.Logger.GetLevel(), hclog.Error))
	}
	switch {
	case cfg.Checksum == "" && installed:
		v.unpinned = pinning(got, file) // whether a checksum is needed depends on the plugin's version, which is not known yet
	case cfg.Checksum == "":
		v.found("checksum", warn, pinning(got, file), "none is configured: any file at that place is started")
	case !strings.EqualFold(cfg.Checksum, got):
		v.found("checksum", fail, `install the plugin again; or, if you have changed it yourself, set checksum = "`+got+`"`, "%s does not have the configured checksum", cfg.Path)
		return false
	default:
		v.found("checksum", fine, "", "matches")
	}
	return true
}

func pinning(sum, file string) string {
	return fmt.Sprintf("if this is the right plugin, add this to %s:\n%s", configFile(file), pluginBlock(sum))
}

func besideThisProgram(path string) bool {
	own, err := os.Executable()
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	return err == nil && filepath.Dir(own) == filepath.Dir(path)
}

func adviceFor(err error) string {
	switch {
	case errors.Is(err, host.ErrUnsafe):
		return "only you and the administrator should be able to write there"
	case errors.Is(err, host.ErrNotFound):
		return "" // the error contains the advice
	}
	return "correct plugin { directory } or " + host.PluginDirEnv
}

// needed are the capabilities that this tool requires.
var needed = []string{"election", "lock"}

func (v *doctorVerb) version(ctx context.Context, p *host.Plugin) {
	info, err := p.Info(ctx)
	if err != nil {
		v.found("version", fail, "use a plugin of the same version as zkrecipes, "+version.String(), "%v", err)
		return
	}
	status, advice := fine, ""
	if info.Version != version.String() {
		status, advice = warn, "versions with the same protocol work together, but features that the older one does not have are missing"
	}
	switch {
	case v.unpinned == "":
	case version.SameBuild(info.Version, info.Build):
		v.found("checksum", fine, "", "none is needed: the plugin is of the same build as zkrecipes")
	default:
		v.found("checksum", warn, v.unpinned, "none is configured, and the plugin is not of the same build as zkrecipes")
	}
	v.found("version", status, advice, "plugin %s, zkrecipes %s, protocol %d", info.Version, version.String(), handshake.Version)
	for _, n := range needed {
		if !slices.Contains(info.Capabilities, n) {
			v.found("version", fail, "install a newer plugin", "the plugin does not have the capability %q", n)
		}
	}
}
