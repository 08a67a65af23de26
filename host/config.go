package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// DefaultStartTimeout bounds the start of a plugin.
const DefaultStartTimeout = 10 * time.Second

// Config says how to launch a plugin. The zero value launches the plugin that
// [Find] finds.
type Config struct {
	// Path is the plugin's executable. It is not looked up in PATH. "" is the
	// one that Find finds.
	//
	// Launch returns ErrUnsafe if everybody may write to the file or to a
	// directory above it, also by way of a link. Do not let a group write to them
	// either: the file is read once to verify its checksum, and again to start it.
	// On Windows nothing is refused, because a file's mode does not tell there.
	Path string

	// Dir is the directory where Find looks first, when Path is "". "" is none.
	Dir string

	// Args are given to the plugin after its name. zkrecipes-plugin needs none.
	Args []string

	// Checksum is the SHA-256 of the executable in hexadecimal, as sha256sum
	// prints it. A plugin that does not match is not started: ErrChecksum.
	//
	// With "" any plugin is started, and a warning is logged. There is no warning
	// if three things hold. Path, Dir or the variable PluginDirEnv names the plugin, or
	// it is beside this program. It is of the same build, or both are of one release. Only
	// this user and the administrator can change it. On Windows there is always a
	// warning, because a file's mode does not tell who can change it.
	Checksum string

	// Env adds to the plugin's environment. "NAME=value" sets a variable. "NAME"
	// passes the host's variable on, if there is one. The plugin gets those of
	// InheritedEnv in any case.
	Env []string

	// Lifetime is the reading end of a pipe. If this process dies, however it dies, the
	// plugin keeps the sessions for as long as any process has the writing end: for as long
	// as this process's children run, for example. A child has it by os/exec's ExtraFiles,
	// and so have all processes that it starts, unless they close it. Keep the writing end
	// open here too, until the last child was started. A plugin that a Supervisor starts in
	// place of another one gets the pipe too. The Config of Upgrade and of Relaunch has to
	// name it again.
	//
	// A process that lives ends its sessions as without a Lifetime, and so does one that is
	// frozen. The file stays the caller's, who closes it when the plugin has ended. On
	// Windows a Lifetime is refused: recipes.ErrInvalid. nil has the sessions closed when
	// this process dies.
	Lifetime *os.File

	// StartTimeout bounds the time from the start of the process until it can
	// open sessions. 0 is DefaultStartTimeout.
	StartTimeout time.Duration

	// Logger receives what the plugin logs. The plugin logs at its level. nil
	// discards all; the error of a failed start has the end of the plugin's
	// stderr all the same.
	Logger hclog.Logger

	// TracerProvider gets a span for each call to the plugin. Its parent is the
	// span of the context that was given to the method. A plugin that traces too
	// has its spans below it.
	//
	// MeterProvider gets the metrics of the calls, and those of the recipes:
	// zkrecipes.sessions, zkrecipes.holds, zkrecipes.wait.duration and
	// zkrecipes.losses.
	//
	// Both are OpenTelemetry's API; the application brings the SDK. nil traces or
	// measures nothing and costs nothing, whatever the global providers are.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

// normalize returns the configuration with defaults filled in, and whether a person has
// chosen the plugin's place, or it is beside this program.
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
	// An absolute path is not looked up. It only has to exist and be executable.
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

// defaults fills in what does not depend on the executable.
func (c Config) defaults() (Config, error) {
	switch {
	case c.Lifetime != nil && runtime.GOOS == "windows":
		return c, fmt.Errorf("host: %w: Config.Lifetime: a process inherits no descriptors on Windows", recipes.ErrInvalid)
	case c.StartTimeout < 0:
		return c, fmt.Errorf("host: Config.StartTimeout is %v; it must not be negative", c.StartTimeout)
	case c.StartTimeout == 0:
		c.StartTimeout = DefaultStartTimeout
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}

// dialOptions are what a connection to the plugin needs.
func (c Config) dialOptions() []grpc.DialOption {
	return client.DialOptions(c.TracerProvider, c.MeterProvider)
}
