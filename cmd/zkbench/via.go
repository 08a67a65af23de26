package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Names of the transports, for -via.
const (
	direct    = "direct"
	inprocess = "inprocess"
	byRelay   = "relay"
	plugin    = "plugin"
)

// launcher prepares a transport. cfg is the configuration of its sessions. The launcher adds
// the end of everything that it starts to end, and writes messages for the user with say.
type launcher func(ctx context.Context, s settings, cfg recipes.SessionConfig, end *cleanup, say say) (bench.Transport, error)

type say func(format string, args ...any)

var transports = map[string]launcher{
	direct: func(context.Context, settings, recipes.SessionConfig, *cleanup, say) (bench.Transport, error) {
		return bench.Transport{Open: zookeeper.Open}, nil
	},
	inprocess: launchInProcess,
	byRelay:   launchRelay,
	plugin:    launchPlugin,
}

// launch prepares the transports of the flags, and opens a session over each, so that a
// transport that does not work fails before the first trial.
func (c command) launch(ctx context.Context, s settings, cfg recipes.SessionConfig, end *cleanup) ([]bench.Transport, error) {
	var all []bench.Transport
	for _, name := range s.via {
		t, err := c.transports[name](ctx, s, cfg, end, c.say)
		if err != nil {
			return nil, fmt.Errorf("prepare -via %s: %w", name, err)
		}
		t.Name = name
		session, err := t.Open(ctx, cfg)
		if err == nil {
			err = session.Close(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("try -via %s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// launchInProcess calls the library through gRPC in memory: the cost of the plugin without a
// second process.
func launchInProcess(_ context.Context, _ settings, _ recipes.SessionConfig, end *cleanup, _ say) (bench.Transport, error) {
	p, err := host.InProcess(zookeeper.Open)
	if err != nil {
		return bench.Transport{}, err
	}
	end.add(func() error { return p.Close(context.Background()) })
	return bench.Transport{Open: p.Open}, nil
}

// launchRelay calls the library through a second process that copies the traffic of the servers.
// No plugin can be faster, because it is a second process too and does more. The difference to
// -via plugin is the plugin's own cost.
func launchRelay(_ context.Context, _ settings, cfg recipes.SessionConfig, end *cleanup, _ say) (bench.Transport, error) {
	if cfg.TLS != nil && cfg.TLS.ServerName == "" && hosts(cfg.Servers) > 1 {
		return bench.Transport{}, errors.New("behind a relay a session cannot know which server's name to expect; give -tls-server-name with a name that is in all certificates, or only one of -servers")
	}
	self, err := os.Executable()
	if err != nil {
		return bench.Transport{}, err
	}
	child := exec.Command(self, append([]string{relayVerbName}, cfg.Servers...)...)
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
	end.add(func() error {
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

// hosts returns the number of different hosts of servers.
func hosts(servers []string) int {
	names := map[string]bool{}
	for _, server := range servers {
		host, _, _ := net.SplitHostPort(server)
		names[host] = true
	}
	return len(names)
}

// relayVerbName is the verb with which zkbench starts itself as a relay.
const relayVerbName = "relay"

// relayVerb starts a relay for each of the servers, and writes their addresses on one line. It
// ends when life, a pipe from the parent process, is closed, which happens however the parent
// ends. It ignores interrupts of the terminal, which are meant for the parent.
func (c command) relayVerb(life io.Reader, servers []string) error {
	var addrs []string
	for _, server := range servers {
		r, err := relay.Listen([]string{server}, nil)
		if err != nil {
			return err
		}
		defer r.Cut()
		addrs = append(addrs, r.Addr())
	}
	if _, err := fmt.Fprintln(c.stdout, strings.Join(addrs, ",")); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, life)
	return nil
}

func launchPlugin(ctx context.Context, s settings, _ recipes.SessionConfig, end *cleanup, say say) (bench.Transport, error) {
	path, err := findPlugin(ctx, s.plugin, end, say)
	if err != nil {
		return bench.Transport{}, err
	}
	p, err := host.Launch(ctx, host.Config{Path: path})
	if err != nil {
		return bench.Transport{}, err
	}
	end.add(func() error { return p.Close(context.Background()) })
	return bench.Transport{Open: p.Open, Processes: func() []int { return []int{p.PID()} }}, nil
}

const modulePath = "github.com/zkrecipes/zkrecipes"

// findPlugin returns the path of the plugin's executable: the given one, or else the one that
// host.Find finds. Under `go run` there may be none. Then it builds one, if the working directory
// belongs to this module.
func findPlugin(ctx context.Context, given string, end *cleanup, say say) (string, error) {
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
	end.add(func() error { return os.RemoveAll(dir) })
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), modulePath+"/cmd/"+host.PluginName)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build the plugin: %w", err), errors.New(string(out)))
	}
	return host.Find(dir)
}
