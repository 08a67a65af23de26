// Package servers has the ZooKeeper servers to measure: it starts or finds them, and reads their
// figures.
package servers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/machine"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Server is the ZooKeeper to measure.
type Server struct {
	words
	Session recipes.SessionConfig // for its sessions
	About   record.Server

	Ensemble *ensemble.Ensemble // started for this run; nil for others
	facts    map[string]string  // facts that the server itself does not report
}

// Figures reads the servers' own figures. mntr has no processor time. For servers that were
// started for this run, it is that of this process's children, where the system has it.
func (s Server) Figures(ctx context.Context) (map[string]float64, error) {
	figures, err := s.mntr(ctx)
	if s.Ensemble != nil {
		if seconds, ok := machine.ServersCPU(); ok {
			figures["process_cpu_seconds"] = seconds
		}
	}
	return figures, err
}

// Start starts the servers of the flags, or finds the running ones. It adds the end of what it has
// started to end.
func Start(ctx context.Context, w Flags, end *exit.Cleanup) (Server, error) {
	switch {
	case w.Ensemble > 0:
		return StartEnsemble(ctx, w.Ensemble, end)
	case len(w.Servers) > 0:
		cfg, err := w.access.config(w.Servers)
		if err != nil {
			return Server{}, err
		}
		return findServers(ctx, cfg)
	}
	return startEmbedded(ctx, end)
}

func findServers(ctx context.Context, cfg recipes.SessionConfig) (Server, error) {
	w, err := newWords(cfg)
	if err != nil {
		return Server{}, err
	}
	about, err := w.describe(ctx)
	return Server{words: w, Session: cfg, About: about}, err
}

func startEmbedded(ctx context.Context, end *exit.Cleanup) (Server, error) {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		return Server{}, fmt.Errorf("start the embedded server: %w", err)
	}
	end.Add(s.Close)
	srv, err := findServers(ctx, recipes.SessionConfig{Servers: []string{s.Addr()}})
	srv.About.Mode = "embedded"
	srv.facts = map[string]string{
		"forceSync": "no: it keeps everything in memory", "disk": "none", "fsync": "none", "caches": "none",
		"processors": "shared with zkbench", "memory": "shared with zkbench",
	}
	return srv, err
}

// StartEnsemble starts real servers, and adds their end to end.
func StartEnsemble(ctx context.Context, n int, end *exit.Cleanup) (Server, error) {
	e, err := ensemble.Start(ctx, ensemble.Config{Servers: n, Properties: map[string]string{"maxClientCnxns": "0"}})
	if err != nil {
		return Server{}, fmt.Errorf("start %s: %w", english.Count(n, "ZooKeeper server"), err)
	}
	end.Add(func() (ended error) {
		if ctx.Err() == nil { // an interrupt of the terminal ends them too, except on Linux
			ended = e.Ended()
		}
		return errors.Join(ended, e.Stop())
	})
	srv, err := findServers(ctx, recipes.SessionConfig{Servers: e.Addrs()})
	srv.Ensemble = e
	srv.facts = map[string]string{
		"forceSync": "yes (ZooKeeper's default)", "caches": "ZooKeeper's defaults",
		"jute.maxbuffer": "ZooKeeper's default",
		"processors":     "shared with zkbench", "memory": "shared with zkbench",
	}
	return srv, err
}

// Addrs returns the addresses of the servers.
func (s Server) Addrs() []string { return s.addrs }

// Victim returns the server that a fault kills: the leader, or the first follower.
func (s Server) Victim(ctx context.Context, v timeline.Victim) (timeline.Server, error) {
	leader, err := s.Ensemble.Leader(ctx)
	if err != nil || v == timeline.Leader {
		return leader, err
	}
	others := s.Ensemble.Servers()
	i := slices.IndexFunc(others, func(o *ensemble.Server) bool { return o != leader && o.Pid() != 0 })
	if i < 0 {
		return nil, errors.New("there is no follower")
	}
	return others[i], nil
}

// A server's first TLS handshake takes seconds on a busy machine.
const askTimeout = 10 * time.Second

type words struct {
	addrs []string
	dial  fourletter.Dial
}

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

// mayChange are facts in which two recordings on the same servers may differ: fsync is measured,
// and the limit of connections decides only whether a trial can run.
var mayChange = []string{"fsync", "maxClientCnxns"}

// Changed returns a fact about the servers that differs between two sets of details: its name, as
// in the servers' replies, and both values. If all are equal, the name is empty. A fact that one of
// them does not know counts as equal.
func Changed(was, now map[string]string) (name, before, after string) {
	known := func(value string) bool { return value != "" && value != notKnown }
	for _, detail := range slices.Sorted(maps.Keys(was)) {
		name, ok := strings.CutPrefix(detail, "server ")
		before, after := was[detail], now[detail]
		if ok && !slices.Contains(mayChange, name) && known(before) && known(after) && before != after {
			return name, before, after
		}
	}
	return "", "", ""
}

const notKnown = "not known: the servers do not report it"

// reported are the facts in the replies to conf and envi, by their names there. Paths and ports
// are left out, because they do not influence speed.
var reported = []string{
	"tickTime", "maxClientCnxns", "minSessionTimeout", "maxSessionTimeout", "initLimit", "syncLimit",
	"java.version", "java.vendor", "jute.maxbuffer", "os.name", "os.arch", "os.memory.max",
}

// unreported are facts that a server does not report. They are known for servers that were
// started for the run, and named as missing for others.
var unreported = []string{"forceSync", "caches", "processors", "memory", "disk", "fsync"}

// Facts adds the known facts about the servers to details. It names the unknown ones too,
// so that a reader does not assume that they are equal in two sets of results.
func (s Server) Facts(ctx context.Context, details map[string]string) {
	add := func(name, value string) {
		if _, ok := details["server "+name]; !ok && value != "" {
			details["server "+name] = value
		}
	}
	for name, value := range s.facts {
		add(name, value)
	}
	for _, addr := range s.words.addrs {
		conf, err := s.words.ask(ctx, addr, "conf")
		if err != nil {
			continue
		}
		envi, _ := s.words.ask(ctx, addr, "envi")
		said := fourletter.Pairs(conf+envi, "=")
		for _, name := range reported {
			add(name, said[name])
		}
		if s.Ensemble != nil {
			for name, value := range machine.Disk(cmp.Or(said["dataLogDir"], said["dataDir"])) {
				add(name, value)
			}
		}
		break
	}
	if s.About.Servers == 1 {
		add("initLimit", "none: it is alone")
		add("syncLimit", "none: it is alone")
	}
	for _, name := range append(slices.Clone(reported), unreported...) {
		add(name, notKnown)
	}
}
