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

// words sends ZooKeeper's four-letter words to servers.
type words struct {
	addrs []string
	tls   *tls.Config // nil without
}

// newWords returns words for the servers of a normalized configuration.
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

// describe gets the version and the mode of the servers, by the four-letter word srvr. The first
// reply is enough. If a server does not allow the word, its version and mode are "".
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

// commit is the suffix of a release's version: the hash of its source, or a placeholder that
// the build did not replace.
var commit = regexp.MustCompile(`-([0-9a-f]{40}|\$\{.*\})$`)

// parseSrvr returns the version and the mode in a reply to srvr, each "" if it is missing.
func parseSrvr(answer string) (version, mode string) {
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Zookeeper version":
			value, _, _ = strings.Cut(value, ",")
			version = commit.ReplaceAllString(value, "")
		case "Mode":
			// The mode must not depend on which server of an ensemble has replied,
			// because compare distinguishes environments by it.
			if mode = "ensemble"; value == "standalone" {
				mode = value
			}
		}
	}
	return version, mode
}

// wantedFigures are the servers' figures that a record should have, by mntr's names without
// zk_. Not all versions of ZooKeeper have them.
var wantedFigures = []string{
	"packets_received", "packets_sent", "watch_count", "znode_count", "approximate_data_size",
	"cnt_fsynctime", "sum_fsynctime", "commit_count", "proposal_count",
	"sum_jvm_pause_time_ms", "process_cpu_seconds",
}

// mntr returns the sum of the servers' replies to mntr. If a server does not reply, there are no
// figures, and the records name all as missing. A sum without it would be wrong: if it replied
// only after the measured part, the growth would contain all that it ever counted.
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

// connections is how many connections the experiment needs at once from this machine.
func (s settings) connections() int {
	n := slices.Max(s.contenders.values)
	if slices.Contains(s.workloads.values, load.Many) {
		n *= s.lines
	}
	return n
}

// admits returns a usageError if the servers' maxClientCnxns is too low for that many
// connections from one address. It returns nil if a server does not report its limit.
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
