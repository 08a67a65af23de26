package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Config says how to launch a plugin. The zero value launches the plugin that
// [Find] finds.
type Config struct {
	// Path is the plugin's executable. Launch does not search PATH for it. "" means the
	// executable that Find returns.
	//
	// Launch returns ErrUnsafe if everybody may write to the file, to a directory above
	// it, or to the directory of a link on the way. Do not let a group write there
	// either: the file is read once to verify its checksum, and again to start it.
	// On Windows Launch checks no permissions, because a file's mode does not say who may
	// write to it.
	Path string

	// Dir is the directory that Find searches first, if Path is "". "" means none.
	Dir string

	// Args are the plugin's arguments. zkrecipes-plugin needs none.
	Args []string

	// Checksum is the SHA-256 of the executable in hexadecimal, as sha256sum prints it.
	// If it does not match, Launch returns ErrChecksum and starts nothing.
	//
	// With "", Launch starts any plugin and logs a warning. It logs none if all of these
	// are true:
	//
	//   - Path, Dir or the variable PluginDirEnv names the plugin, or it is beside this
	//     program.
	//   - Plugin and program are of one build or of one release.
	//   - Only this user and the administrator can change the plugin.
	//
	// On Windows Launch always warns, because a file's mode does not say who can change
	// the plugin.
	Checksum string

	// Env adds to the plugin's environment. "NAME=value" sets a variable. "NAME" copies
	// the host's variable, if it is set. These are always copied: TMPDIR, TMP, TEMP, SSL_CERT_FILE,
	// SSL_CERT_DIR, TZ, LANG, LC_ALL, GOMEMLIMIT, GOMAXPROCS, SYSTEMROOT and WINDIR. Other
	// variables that the plugin's Go runtime, resolver and Kerberos read are GODEBUG, RES_OPTIONS
	// and KRB5_CONFIG.
	Env []string

	// Lifetime is the reading end of a pipe. If this process dies, for any reason, the
	// plugin keeps the sessions until no process has the writing end: until this process's
	// children have exited, for example. A child gets the writing end by os/exec's
	// ExtraFiles, and passes it on to the processes that it starts, unless it closes it.
	// Keep the writing end open here too, until the last child was started. A Supervisor
	// passes the pipe on to each plugin that it restarts. The Config of Upgrade must name
	// it again.
	//
	// While this process lives, or is frozen, its sessions end as without a Lifetime. The
	// caller owns the file and closes it after the plugin has exited. On Windows a
	// Lifetime is refused with recipes.ErrInvalid. With nil, the plugin closes the
	// sessions when this process dies.
	Lifetime *os.File

	// StartTimeout bounds the time from the start of the process until it can open
	// sessions. 0 means a minute: a machine that starts hundreds of plugins at once is late, not
	// broken.
	StartTimeout time.Duration

	// Logger receives what the plugin logs. Its level is the plugin's level too. nil
	// discards the logs. The error of a failed start contains the end of the plugin's
	// stderr in any case.
	Logger hclog.Logger

	// TracerProvider gets a span for each call to the plugin. The span's parent is that of
	// the method's context. The spans of a plugin that traces are its children.
	//
	// MeterProvider gets the metrics of the calls, and those of the sessions and recipes:
	// docs/operating.md lists them. At each collection, the host asks the plugin for the
	// counters of each session, for a second at most. Each Launch registers with the provider
	// and stays registered; a Supervisor registers once. If two plugins that run report to one
	// provider, zkrecipes.deadline.remaining is that of one of them.
	//
	// Both are OpenTelemetry's API; the application supplies the SDK. nil disables traces
	// or metrics at no cost, whatever the global providers are.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

// normalize returns the configuration with its defaults. chosen reports whether a person
// named the plugin's location, or the plugin is beside this program.
func (c Config) normalize() (n Config, chosen bool, err error) {
	chosen = c.Path != ""
	if c.Path == "" {
		found, at, err := find(c.Dir)
		if err != nil {
			return c, false, err
		}
		c.Path, chosen = found, at.named || at.beside
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return c, false, fmt.Errorf("host: plugin %s: %w", c.Path, err)
	}
	// LookPath does not search PATH for an absolute path. It checks that the file exists
	// and is executable.
	if _, err := exec.LookPath(path); err != nil {
		return c, false, fmt.Errorf("host: plugin %s cannot be started: %w", c.Path, err)
	}
	if err := checkPermissions(path); err != nil {
		return c, false, err
	}
	c.Path = path
	n, err = c.defaults()
	return n, chosen, err
}

// defaults sets the defaults that do not depend on the executable.
func (c Config) defaults() (Config, error) {
	switch {
	case c.Lifetime != nil && runtime.GOOS == "windows":
		return c, fmt.Errorf("host: %w: Config.Lifetime: a process inherits no descriptors on Windows", recipes.ErrInvalid)
	case slices.ContainsFunc(c.Env, func(e string) bool { return e == "" || e[0] == '=' || strings.ContainsRune(e, 0) }):
		return c, fmt.Errorf("host: %w: Config.Env is %q; each must be NAME or NAME=value", recipes.ErrInvalid, c.Env)
	case c.StartTimeout < 0:
		return c, fmt.Errorf("host: Config.StartTimeout is %v; it must not be negative", c.StartTimeout)
	case c.StartTimeout == 0:
		c.StartTimeout = time.Minute
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}

func (c Config) dialOptions() []grpc.DialOption {
	return link.DialOptions(c.TracerProvider, c.MeterProvider)
}
