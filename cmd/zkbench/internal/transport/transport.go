// Package transport has the ways from zkbench to the recipes, for -via.
package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/servers"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Names of the transports, for -via.
const (
	Direct    = "direct"
	InProcess = "inprocess"
	Relay     = "relay"
	Plugin    = "plugin"
)

// Launcher prepares a transport. cfg is the configuration of its sessions, and plugin the
// executable of -plugin, if that is given. The launcher adds the end of everything that it
// starts to end, and writes messages for the user with say.
type Launcher func(ctx context.Context, plugin string, cfg recipes.SessionConfig, end *exit.Cleanup, say Say) (bench.Transport, error)

// Say writes a message for the user.
type Say func(format string, args ...any)

// All are the launchers by their names.
var All = map[string]Launcher{
	Direct: func(context.Context, string, recipes.SessionConfig, *exit.Cleanup, Say) (bench.Transport, error) {
		return bench.Transport{Open: zookeeper.Open}, nil
	},
	InProcess: launchInProcess,
	Relay:     launchRelay,
	Plugin:    launchPlugin,
}

// Launch prepares a transport by its name, and opens a session over it, so that a transport that
// does not work fails before the first trial. See Launcher for the arguments.
func Launch(ctx context.Context, all map[string]Launcher, name, plugin string, cfg recipes.SessionConfig, end *exit.Cleanup, say Say) (bench.Transport, error) {
	t, err := all[name](ctx, plugin, cfg, end, say)
	if err != nil {
		return t, fmt.Errorf("prepare -via %s: %w", name, err)
	}
	t.Name = name
	session, err := t.Open(ctx, cfg)
	if err == nil {
		err = session.Close(ctx)
	}
	if err != nil {
		return t, fmt.Errorf("try -via %s: %w", name, err)
	}
	return t, nil
}

// launchInProcess calls the library through gRPC in memory. That shows what the plugin costs
// without a second process.
func launchInProcess(_ context.Context, _ string, _ recipes.SessionConfig, end *exit.Cleanup, _ Say) (bench.Transport, error) {
	p, err := host.InProcess(zookeeper.Open)
	if err != nil {
		return bench.Transport{}, err
	}
	end.Add(func() error { return p.Close(context.Background()) })
	return bench.Transport{Open: p.Open}, nil
}

// launchRelay calls the library through a second process that copies the traffic of the servers.
// No plugin can be faster, because it is a second process too and does more. The difference to
// -via plugin is the plugin's own cost.
func launchRelay(_ context.Context, _ string, cfg recipes.SessionConfig, end *exit.Cleanup, _ Say) (bench.Transport, error) {
	if cfg.TLS != nil && cfg.TLS.ServerName == "" && servers.Hosts(cfg.Servers) > 1 {
		return bench.Transport{}, errors.New("behind a relay a session cannot know which server's name to expect; give -tls-server-name with a name that is in all certificates, or only one of -servers")
	}
	self, err := os.Executable()
	if err != nil {
		return bench.Transport{}, err
	}
	child := exec.Command(self, append([]string{RelayVerb}, cfg.Servers...)...)
	child.Stderr = os.Stderr
	life, err := child.StdinPipe()
	if err != nil {
		return bench.Transport{}, err
	}
	said, err := child.StdoutPipe()
	if err != nil {
		return bench.Transport{}, err
	}
	if err := child.Start(); err != nil {
		return bench.Transport{}, err
	}
	end.Add(func() error {
		life.Close()
		return child.Wait()
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return bench.Transport{}, fmt.Errorf("the relay process exited at its start: %w", err)
	}
	through := strings.Split(strings.TrimSpace(line), ",")
	return bench.Transport{
		Open: func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
			return zookeeper.Open(ctx, relay.Through(cfg, through...))
		},
		Processes: func() []int { return []int{child.Process.Pid} },
	}, nil
}

// RelayVerb is the verb with which zkbench starts itself as a relay.
const RelayVerb = "relay"

// ServeRelay starts a relay for each of the servers, and writes their addresses on one line. It
// ends when life, a pipe from the parent process, is closed, which happens however the parent
// ends. It ignores interrupts of the terminal, which are meant for the parent.
func ServeRelay(stdout io.Writer, life io.Reader, servers []string) error {
	var addrs []string
	for _, server := range servers {
		r, err := relay.Listen([]string{server}, nil)
		if err != nil {
			return err
		}
		defer r.Cut()
		addrs = append(addrs, r.Addr())
	}
	if _, err := fmt.Fprintln(stdout, strings.Join(addrs, ",")); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, life)
	return nil
}

func launchPlugin(ctx context.Context, plugin string, _ recipes.SessionConfig, end *exit.Cleanup, say Say) (bench.Transport, error) {
	path, err := findPlugin(ctx, plugin, end, say)
	if err != nil {
		return bench.Transport{}, err
	}
	p, err := host.Launch(ctx, host.Config{Path: path})
	if err != nil {
		return bench.Transport{}, err
	}
	end.Add(func() error { return p.Close(context.Background()) })
	return bench.Transport{Open: p.Open, Processes: func() []int { return []int{p.PID()} }}, nil
}

const modulePath = "github.com/zkrecipes/zkrecipes"

// findPlugin returns the path of the plugin's executable: the given one, or else the one that
// host.Find finds. Under `go run` there may be none. Then it builds one, if the working directory
// belongs to this module.
func findPlugin(ctx context.Context, given string, end *exit.Cleanup, say Say) (string, error) {
	if given != "" {
		return given, nil
	}
	path, err := host.Find("")
	if !errors.Is(err, host.ErrNotFound) {
		say("plugin: %s", path)
		return path, err
	}
	if out, list := exec.CommandContext(ctx, "go", "list", "-m").Output(); list != nil || strings.TrimSpace(string(out)) != modulePath {
		return "", fmt.Errorf("%w; or give it with -plugin PATH", err)
	}
	say("plugin: none found, building %s/cmd/%s", modulePath, host.PluginName)
	dir, err := os.MkdirTemp("", "zkbench-")
	if err != nil {
		return "", err
	}
	end.Add(func() error { return os.RemoveAll(dir) })
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), modulePath+"/cmd/"+host.PluginName)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build the plugin: %w", err), errors.New(string(out)))
	}
	return host.Find(dir)
}
