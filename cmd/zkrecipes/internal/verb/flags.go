package verb

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// DurationVar is flag's, but for an error that says what a duration looks like.
// usage has to name it in back quotes.
func DurationVar(f *flag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f.Var(duration{d}, name, usage)
}

// duration is a flag.Value.
type duration struct{ to *time.Duration }

func (d duration) String() string {
	if d.to == nil { // flag asks what is no value
		return time.Duration(0).String()
	}
	return d.to.String()
}

func (d duration) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("a duration is a number and a unit, such as 500ms, 5s or 1m30s")
	}
	*d.to = parsed
	return nil
}

// Priority is that of an element of a queue, or of a contender for a lock, which
// may have none. It is a flag.Value.
type Priority struct {
	Given  bool
	Number int
}

func (p *Priority) String() string { return "" }

// Set implements flag.Value.
func (p *Priority) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > recipes.MaxPriority {
		return fmt.Errorf("a priority is a number from 0 to %d", recipes.MaxPriority)
	}
	p.Given, p.Number = true, n
	return nil
}

// OnePath is what most verbs that ask have in common: they take a PATH, and no
// flags of their own unless they say so.
type OnePath struct{ Path string }

// Flags defines none.
func (p *OnePath) Flags(*flag.FlagSet) {}

// Arguments takes PATH.
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
	f.BoolVar((*bool)(p), "priorities", false, "PATH is a priority queue, whose elements were put with -priority")
}

// Open opens the queue.
func (p Priorities) Open(s recipes.Recipes, path string, cfg recipes.QueueConfig) (recipes.Consumer, error) {
	if p {
		return s.PriorityQueue(path, cfg)
	}
	return s.Queue(path, cfg)
}

// Me is who stores something, for people who look at it: this host and process.
func Me() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s[%d]", host, os.Getpid())
}

// where are the flags that say where the configuration and ZooKeeper are. A flag goes before
// its variable, and that before the file. The flag sets the variable, so that zkrecipes in a
// script that runs under a lock finds the same servers.
type where struct {
	config          string
	servers, chroot string
	sessionTimeout  time.Duration
	connectTimeout  time.Duration // of a verb that does not wait for servers
}

func (w *where) flags(f *flag.FlagSet) {
	f.StringVar(&w.config, "config", "", "`file` with the configuration (HCL); by default $ZKRECIPES_CONFIG, then\n~/.zkrecipes.d/config.hcl; variables such as $ZKRECIPES_SERVERS override it")
	f.StringVar(&w.servers, "servers", "", "`addresses` of the ZooKeeper servers, as host:port, separated by commas; instead of\n$ZKRECIPES_SERVERS")
	f.StringVar(&w.chroot, "chroot", "", "the `path` below which all paths are; instead of $ZKRECIPES_CHROOT")
	DurationVar(f, &w.sessionTimeout, "session-timeout", 0, "ask for a session timeout of this `duration`; instead of $ZKRECIPES_SESSION_TIMEOUT")
	DurationVar(f, &w.connectTimeout, "connect-timeout", 5*time.Second, "with -try, and in a verb that does not wait: give up if no server answers within this\n`duration`")
}

// apply sets the variables of the flags that were given.
func (w *where) apply(given *flag.FlagSet) (err error) {
	if w.connectTimeout <= 0 {
		return errors.New("-connect-timeout must be positive")
	}
	given.Visit(func(f *flag.Flag) {
		cfg := recipes.SessionConfig{Servers: []string{"localhost"}}
		variable, value := "ZKRECIPES_SERVERS", f.Value.String()
		switch f.Name {
		case "servers":
			cfg.Servers = strings.Split(strings.ReplaceAll(w.servers, " ", ""), ",")
		case "chroot":
			variable, cfg.Chroot = "ZKRECIPES_CHROOT", w.chroot
		case "session-timeout":
			variable, cfg.SessionTimeout = "ZKRECIPES_SESSION_TIMEOUT", w.sessionTimeout
		default:
			return
		}
		if _, wrong := cfg.Normalize(); wrong != nil || value == "" || value == "0s" {
			err = fmt.Errorf("-%s %q is wrong", f.Name, value)
			if wrong != nil {
				err = fmt.Errorf("-%s: %w", f.Name, wrong)
			}
			return
		}
		if set := os.Setenv(variable, value); err == nil {
			err = set
		}
	})
	return err
}
