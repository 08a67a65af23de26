package verb

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

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
