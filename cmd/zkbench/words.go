package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// A server's first TLS handshake takes seconds on a busy machine.
	askTimeout = 10 * time.Second
	maxAnswer  = 1 << 20
)

// words asks servers with ZooKeeper's four-letter words.
type words struct {
	addrs []string
	tls   *tls.Config // nil without
}

// newWords returns words for the servers of a configuration that is normal.
func newWords(cfg recipes.SessionConfig) (words, error) {
	w := words{addrs: cfg.Servers}
	if cfg.TLS == nil {
		return w, nil
	}
	var err error
	w.tls, err = cfg.TLS.ClientConfig()
	return w, err
}

func (w words) ask(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	dial := new(net.Dialer).DialContext
	if w.tls != nil {
		dial = (&tls.Dialer{Config: w.tls}).DialContext
	}
	conn, err := dial(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("ask %s: %w", addr, err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if ctx.Err() != nil {
		return "", fmt.Errorf("ask %s: no answer: %w", addr, context.Cause(ctx))
	}
	// With TLS a server may end the connection without a closing alert.
	if err != nil && (w.tls == nil || len(answer) == 0) {
		return "", fmt.Errorf("ask %s: %w", addr, err)
	}
	return string(answer), nil
}

// describe asks the servers what they are, with the four-letter word srvr. One
// answer is enough: a server that is down is the clients' business. A server that
// does not want to tell is described by what is known without it.
func (w words) describe(ctx context.Context) (record.Server, error) {
	about := record.Server{Servers: len(w.addrs)}
	var failures []error
	for _, addr := range w.addrs {
		answer, err := w.ask(ctx, addr, "srvr")
		if err != nil {
			failures = append(failures, err)
			continue
		}
		about.Version, about.Mode = parseSrvr(answer)
		return about, nil
	}
	return about, fmt.Errorf("no ZooKeeper server answers; is it running, and is the address right?\n%w", errors.Join(failures...))
}

// commit is what a release has behind its number: the hash that it was built
// from, or the build's failure to fill that in.
var commit = regexp.MustCompile(`-([0-9a-f]{40}|\$\{.*\})$`)

// parseSrvr returns the version and the mode in an answer to srvr, each "" if it
// is not there.
func parseSrvr(answer string) (version, mode string) {
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Zookeeper version":
			value, _, _ = strings.Cut(value, ",")
			version = commit.ReplaceAllString(value, "")
		case "Mode":
			// Which server was asked must not decide what the results are
			// compared with.
			if mode = "ensemble"; value == "standalone" {
				mode = value
			}
		}
	}
	return version, mode
}

// wantedFigures are the servers' figures that a record should have, by mntr's
// names without zk_. Which of them there are depends on the version.
var wantedFigures = []string{
	"packets_received", "packets_sent", "watch_count", "znode_count", "approximate_data_size",
	"cnt_fsynctime", "sum_fsynctime", "commit_count", "proposal_count",
	"sum_jvm_pause_time_ms", "process_cpu_seconds",
}

// mntr reads the servers' figures: what they answer to mntr, added up. A server that
// does not have a figure adds nothing. If one does not answer there are no figures, and
// the records name all as missing. A sum that lacked a server only before the measured
// part would grow by all that the server ever counted.
func (w words) mntr(ctx context.Context) (map[string]float64, error) {
	sum := map[string]float64{}
	for _, addr := range w.addrs {
		answer, err := w.ask(ctx, addr, "mntr")
		if err != nil {
			return map[string]float64{}, ctx.Err()
		}
		for name, value := range parseMntr(answer) {
			sum[name] += value
		}
	}
	return sum, ctx.Err()
}

func parseMntr(answer string) map[string]float64 {
	figures := map[string]float64{}
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			figures[strings.TrimPrefix(name, "zk_")] = v
		}
	}
	return figures
}

// connections are what the experiment needs at once from this machine.
func (s settings) connections() int {
	n := slices.Max(s.contenders.values)
	if slices.Contains(s.workloads.values, load.Many) {
		n *= s.lines
	}
	return n
}

// admits returns a usageError if the servers say that they do not allow so many
// connections from one address. Whoever does not tell is taken to.
func (s server) admits(ctx context.Context, needed int) error {
	allowed := 0
	for _, addr := range s.words.addrs {
		conf, err := s.words.ask(ctx, addr, "conf")
		if err != nil {
			return nil
		}
		limit, ok := maxClientCnxns(conf)
		if !ok || limit == 0 {
			return nil
		}
		allowed += limit
	}
	if needed <= allowed {
		return nil
	}
	return usageError{fmt.Errorf("%d sessions are needed at once, and the servers allow %d connections from one address (maxClientCnxns); raise it, use fewer -contenders, or spread them over machines with -join",
		needed, allowed)}
}

func maxClientCnxns(conf string) (int, bool) {
	for line := range strings.Lines(conf) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "maxClientCnxns="); ok {
			n, err := strconv.Atoi(value)
			return n, err == nil
		}
	}
	return 0, false
}
