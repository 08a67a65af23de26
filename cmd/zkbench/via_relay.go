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
	"strings"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// launchRelay calls the library, but has a second process copy what goes to the servers
// and comes from them. No plugin can be faster than that, because it is a second
// process too and has more to do; what -via plugin takes beyond it is the plugin's own.
func launchRelay(_ context.Context, _ settings, cfg recipes.SessionConfig, end *cleanup, _ say) (bench.Transport, error) {
	if cfg.TLS != nil && cfg.TLS.ServerName == "" && hosts(cfg.Servers) > 1 {
		return bench.Transport{}, errors.New("a session cannot tell at a relay which server's name to expect in the certificate; give -tls-server-name with one that is in all of them, or one of -servers")
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
		return bench.Transport{}, fmt.Errorf("the relay ended before it relayed: %w", err)
	}
	through := strings.Split(strings.TrimSpace(line), ",")
	return bench.Transport{
		Open: func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
			return zookeeper.Open(ctx, relay.Through(cfg, through...))
		},
		Processes: func() []int { return []int{child.Process.Pid} },
	}, nil
}

// hosts is on how many hosts servers are.
func hosts(servers []string) int {
	names := map[string]bool{}
	for _, server := range servers {
		host, _, _ := net.SplitHostPort(server)
		names[host] = true
	}
	return len(names)
}

// relayVerbName is the verb by which zkbench starts itself as a relay.
const relayVerbName = "relay"

// relayVerb relays to each of the servers until life ends, which it does however
// the process ends that started this one. It says on one line where it listens.
// An interrupt at the terminal reaches it too, and is not for it.
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
