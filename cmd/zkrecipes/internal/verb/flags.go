package verb

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// DurationVar is [flag.DurationVar] for durations that are not negative. Its error shows the
// syntax of a duration. usage must name the value in back quotes.
func DurationVar(f *flag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f.Var(duration{d}, name, usage)
}

type duration struct{ to *time.Duration }

func (d duration) String() string {
	if d.to == nil { // package flag prints a zero value to find out whether it is the default
		return time.Duration(0).String()
	}
	return d.to.String()
}

func (d duration) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("a duration is a number and a unit, such as 500ms, 5s or 1m30s")
	case parsed < 0:
		return errors.New("a duration must not be negative")
	}
	*d.to = parsed
	return nil
}

// Priority is the priority of an element or a contender, if -priority is given.
type Priority struct {
	Given  bool
	Number int
}

// Flag defines -priority.
func (p *Priority) Flag(f *flag.FlagSet, usage string) {
	f.Func("priority", usage, func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > recipes.LowestPriority {
			return fmt.Errorf("a priority is a number from 0 to %d", recipes.LowestPriority)
		}
		p.Given, p.Number = true, n
		return nil
	})
}

// OnePath is embedded by verbs whose only argument is PATH. It has no flags.
type OnePath struct{ Path string }

// Flags implements Action.
func (p *OnePath) Flags(*flag.FlagSet) {}

// Arguments implements Action.
func (p *OnePath) Arguments(args []string) error {
	if len(args) != 1 {
		return errors.New("give one PATH, after the flags")
	}
	p.Path = args[0]
	return recipes.ValidatePath(p.Path)
}

// Priorities reports whether the queue at PATH has priorities.
type Priorities bool

// Flag defines -priorities.
func (p *Priorities) Flag(f *flag.FlagSet) {
	f.BoolVar((*bool)(p), "priorities", false, helptext.Common("PATH is a priority queue, whose elements were put with -priority"))
}

// Open opens the queue.
func (p Priorities) Open(s recipes.Recipes, path string, cfg recipes.QueueConfig) (recipes.Consumer, error) {
	if p {
		return s.PriorityQueue(path, cfg)
	}
	return s.Queue(path, cfg)
}

// Me names this host and process. It is the default data of znodes, for people who read them.
func Me() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s[%d]", host, os.Getpid())
}

// where holds the flags that locate the configuration and ZooKeeper. A flag overrides its
// variable, and the variable overrides the file. The flag sets the variable, so that a
// zkrecipes that the command runs uses the same servers.
type where struct {
	config          string
	servers, chroot string
	sessionTimeout  time.Duration
	connectTimeout  time.Duration // of verbs that do not wait for servers

	flagOf map[string]string // by the variable that apply has set from it
}

func (w *where) flags(f *flag.FlagSet) {
	f.StringVar(&w.config, "config", "", "configuration `file` (HCL); by default $ZKRECIPES_CONFIG, then\n~/.zkrecipes.d/config.hcl; variables such as $ZKRECIPES_SERVERS override it")
	f.StringVar(&w.servers, "servers", "", helptext.Common("`addresses` of the ZooKeeper servers, as host:port, separated by commas, with the chroot\nafter the last one, if any; overrides $ZKRECIPES_SERVERS"))
	f.StringVar(&w.chroot, "chroot", "", "the `path` below which all paths are; overrides $ZKRECIPES_CHROOT")
	DurationVar(f, &w.sessionTimeout, "session-timeout", 0, "request a session timeout of this `duration`; overrides $ZKRECIPES_SESSION_TIMEOUT")
	DurationVar(f, &w.connectTimeout, "connect-timeout", 5*time.Second, "with -try, and in verbs that do not wait: give up if no server answers within this\n`duration`")
}

func (w *where) apply(given *flag.FlagSet) (err error) {
	if w.connectTimeout == 0 {
		return errors.New("-connect-timeout must be positive")
	}
	w.flagOf = map[string]string{}
	given.Visit(func(f *flag.Flag) {
		cfg := recipes.SessionConfig{Servers: []string{"localhost"}}
		var wrong error
		switch f.Name {
		case "servers":
			cfg.Servers, cfg.Chroot, wrong = recipes.ParseConnectString(w.servers)
		case "chroot":
			cfg.Chroot = w.chroot
		case "session-timeout":
			cfg.SessionTimeout = w.sessionTimeout
		default:
			return
		}
		if wrong == nil {
			cfg, wrong = cfg.Normalize()
		}
		set := func(variable, value string) {
			if err == nil {
				err = os.Setenv(variable, value)
				w.flagOf[variable] = "-" + f.Name
			}
		}
		value := f.Value.String()
		switch {
		case wrong != nil:
			err = fmt.Errorf("-%s: %w", f.Name, wrong)
		case value == "" || value == "0s":
			err = fmt.Errorf("-%s %q is wrong", f.Name, value)
		case f.Name == "session-timeout":
			set("ZKRECIPES_SESSION_TIMEOUT", value)
		case f.Name == "chroot":
			set("ZKRECIPES_CHROOT", value)
		case cfg.Chroot != "" && w.chroot != "" && cfg.Chroot != w.chroot:
			err = fmt.Errorf("-servers has the chroot %s, and -chroot is %s; give one of them", cfg.Chroot, w.chroot)
		default:
			set("ZKRECIPES_SERVERS", strings.Join(cfg.Servers, ","))
			if cfg.Chroot != "" {
				set("ZKRECIPES_CHROOT", cfg.Chroot)
			}
		}
	})
	return err
}

// sources replaces the variables that flags have set by these flags, each of them once: those that
// one flag sets are neighbours.
func (w *where) sources(variables []string) []string {
	return slices.Compact(List(variables, func(v string) string { return cmp.Or(w.flagOf[v], v) }))
}

// DialectFlag defines -dialect.
func DialectFlag(f *flag.FlagSet, d *recipes.Dialect) {
	f.Func("dialect", "share PATH with programs of this `library`: zookeeper, curator or kazoo (default zookeeper)", func(name string) (err error) {
		*d, err = recipes.Dialect(name).Normalize()
		return err
	})
}

// OtherLibrary reports whether d is the dialect of another library.
func OtherLibrary(d recipes.Dialect) bool { return d != "" && d != recipes.ZooKeeper }

// joins are the verbs that share the wait queue of a contender, by its dialect and recipe.
var joins = map[recipes.Dialect]map[string]string{
	recipes.ZooKeeper: {
		"Lock":         "lock without -n, -shared, -exclusive, -priority and -dialect; Curator's InterProcessMutex and LeaderSelector have the names of a lock",
		"Semaphore":    "lock with -n, and without -dialect; zkrecipes semaphore PATH shows the number of permits",
		"SharedLock":   "lock with -shared or -exclusive, and without -dialect",
		"PriorityLock": "lock with -priority",
		"Election":     "elect without -dialect",
		"Queue":        "queue without -dialect",
		"Counter":      "counter without -dialect",
	},
	recipes.Curator: {
		"InterProcessReadWriteLock": "lock with -shared or -exclusive",
		"LeaderLatch":               "elect",
		"InterProcessSemaphoreV2":   "lock with -n, 1 for InterProcessSemaphoreMutex",
		"SimpleDistributedQueue":    "queue put or queue take",
		"DistributedAtomicLong":     "counter",
		"DistributedDoubleBarrier":  "double-barrier",
	},
	recipes.Kazoo: {
		"Lock":          "lock or elect",
		"ReadLock":      "lock with -shared or -exclusive",
		"Semaphore":     "lock with -n",
		"Queue":         "queue put or queue take",
		"DoubleBarrier": "double-barrier",
	},
}

// Foreign adds advice to an error that names a third-party contender: the verb and the
// dialect that share its wait queue.
func Foreign(err error) error {
	f, ok := errors.AsType[*recipes.ForeignError](err)
	if !ok {
		return err
	}
	verb := joins[f.Dialect][f.Recipe]
	switch {
	case f.Dialect != recipes.ZooKeeper && verb == "":
		return fmt.Errorf("%w: use -dialect %s, or another PATH", err, f.Dialect)
	case f.Dialect != recipes.ZooKeeper:
		return fmt.Errorf("%w: use -dialect %s (zkrecipes %s), or another PATH", err, f.Dialect, verb)
	case verb == "":
		return fmt.Errorf("%w: zkrecipes has no such recipe: give another PATH", err)
	}
	return fmt.Errorf("%w: use another PATH, or zkrecipes %s", err, verb)
}
