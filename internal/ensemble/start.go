package ensemble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	startTimeout  = time.Minute // if ctx has no deadline
	startAttempts = 5           // each with other ports
)

// Start starts the servers and returns when all of them serve. It waits until ctx
// ends, or a minute if ctx has no deadline. The end of ctx does not stop servers after the
// start. If Start fails, no server is left running, and the error contains the end of the
// failed server's log. Without a ZooKeeper on this machine, the error is [ErrNotFound].
func Start(ctx context.Context, cfg Config) (*Ensemble, error) {
	return start(ctx, cfg, pickPorts)
}

// start is Start with the choice of ports as a parameter.
func start(ctx context.Context, cfg Config, pick func(n int) ([]int, error)) (*Ensemble, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
	}
	for attempt := 1; ; attempt++ {
		e, err := startOnce(ctx, cfg, pick)
		if !errors.Is(err, errPortTaken) || attempt == startAttempts {
			return e, err
		}
		cfg.Logger.Debug("another process listens on one of the ports, starting again on other ports", "attempt", attempt)
	}
}

func startOnce(ctx context.Context, cfg Config, pick func(n int) ([]int, error)) (*Ensemble, error) {
	e, err := prepare(cfg, pick)
	if err != nil {
		return nil, err
	}
	err = e.launchAll()
	if err == nil {
		err = e.WaitServing(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// prepare creates the ensemble and its files. It starts only the launcher.
func prepare(cfg Config, pick func(n int) ([]int, error)) (*Ensemble, error) {
	dir, err := makeDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	e := &Ensemble{installation: cfg.Installation, dir: dir, launcher: newLauncher()}
	if err := e.addServers(cfg, pick); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

func makeDir(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "zookeeper-")
	if err != nil {
		return "", fmt.Errorf("ensemble: %w", err)
	}
	// Each server has its own working directory, in which a relative path would name
	// another directory. answersItself compares dataDir with this path.
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("ensemble: %w", err)
	}
	return dir, nil
}

func (e *Ensemble) addServers(cfg Config, pick func(n int) ([]int, error)) error {
	picked, err := pick(4 * cfg.all())
	if err != nil {
		return err
	}
	for i := range cfg.all() {
		e.servers = append(e.servers, e.newServer(cfg, i+1, picked[4*i:]))
	}
	for _, s := range e.servers {
		if err := s.writeFiles(cfg, e.servers); err != nil {
			return err
		}
	}
	return nil
}

func (e *Ensemble) newServer(cfg Config, id int, picked []int) *Server {
	dir := filepath.Join(e.dir, fmt.Sprint("server", id))
	s := &Server{
		id:       id,
		host:     cfg.host(id),
		dir:      dir,
		ports:    ports{client: picked[0], quorum: picked[1], election: picked[2]},
		cfg:      cfg,
		launcher: e.launcher,
		log:      cfg.Logger,
	}
	if cfg.TLS != nil {
		s.ports.secure = picked[3]
	}
	return s
}

func (e *Ensemble) launchAll() error {
	for _, s := range e.servers {
		if _, err := s.relaunch(); err != nil {
			return fmt.Errorf("ensemble: start server %d: %w", s.id, err)
		}
	}
	return nil
}

const loopbackIP = "127.0.0.1"

// Ports are below the ranges of source ports: from 32768 on Linux, from 49152 on macOS and
// Windows. Any outgoing connection of the machine can use a port of those ranges while the
// server is down. Even worse, a client that keeps dialling such a port can connect to
// itself. Then the server cannot listen on that port again.
const (
	lowestPort  = 10240
	highestPort = 32767
)

// pickPorts returns n distinct loopback ports that were free a moment ago. Another process
// can listen on one of them before the server does. The caller must be able to pick again.
func pickPorts(n int) ([]int, error) {
	var listeners []net.Listener // kept open so that no port is picked twice
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	var last error
	for range 100 * n {
		if len(listeners) == n {
			break
		}
		l, err := net.Listen("tcp", loopback.address(lowestPort+rand.IntN(highestPort-lowestPort+1)))
		if err != nil {
			last = err
			continue
		}
		listeners = append(listeners, l)
	}
	if len(listeners) < n {
		return nil, fmt.Errorf("ensemble: cannot find %d free ports on %s: %w", n, loopbackIP, last)
	}
	ports := make([]int, n)
	for i, l := range listeners {
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func (h Host) address(port int) string { return net.JoinHostPort(h.IP, strconv.Itoa(port)) }

// errPortTaken means that a server could not start because another process listens on one
// of its ports.
var errPortTaken = errors.New("port taken")
