package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A server's first TLS handshake takes seconds on a busy machine.
const askTimeout = 10 * time.Second

// words sends ZooKeeper's four-letter words to servers.
type words struct {
	addrs []string
	dial  fourletter.Dial
}

// newWords returns words for the servers of a normalized configuration.
func newWords(cfg recipes.SessionConfig) (words, error) {
	var secure *tls.Config
	var err error
	if cfg.TLS != nil {
		secure, err = cfg.TLS.ClientConfig()
	}
	return words{cfg.Servers, fourletter.Dialer(secure)}, err
}

func (w words) ask(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return w.dial.Ask(ctx, addr, word)
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

// parseSrvr returns the version and the mode in a reply to srvr, each "" if it is missing. The
// mode must not depend on which server of an ensemble has replied, because compare distinguishes
// environments by it.
func parseSrvr(answer string) (version, mode string) {
	found := fourletter.Pairs(answer, ": ")
	version, _, _ = strings.Cut(found["Zookeeper version"], ",")
	if mode = found["Mode"]; mode != "" && mode != "standalone" {
		mode = "ensemble"
	}
	return commit.ReplaceAllString(version, ""), mode
}

// Wanted are the servers' figures that a record should have, by mntr's names without
// zk_. Not all versions of ZooKeeper have them.
var Wanted = []string{
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
		for name, value := range ParseMntr(answer) {
			sum[name] += value
		}
	}
	return sum, ctx.Err()
}

// ParseMntr returns the figures in a reply to mntr, by their names without zk_.
func ParseMntr(answer string) map[string]float64 {
	figures := map[string]float64{}
	for name, value := range fourletter.Pairs(answer, "\t") {
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			figures[strings.TrimPrefix(name, "zk_")] = v
		}
	}
	return figures
}

// Admits returns exit.Usage if the servers' maxClientCnxns is too low for that many
// connections from one address. It returns nil if a server does not report its limit.
func (s Server) Admits(ctx context.Context, needed int) error {
	allowed := 0
	for _, addr := range s.words.addrs {
		conf, _ := s.words.ask(ctx, addr, "conf")
		limit, err := strconv.Atoi(fourletter.Pairs(conf, "=")["maxClientCnxns"])
		if err != nil || limit == 0 {
			return nil
		}
		allowed += limit
	}
	if needed <= allowed {
		return nil
	}
	return exit.Usage(fmt.Errorf("%d sessions are needed at once, and the servers allow %s from one address (maxClientCnxns); raise it, use fewer -contenders, or spread them over machines with -join",
		needed, english.Count(allowed, "connection")))
}
