package hostconfig

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/internal/secret"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// overrides are the environment variables, in the order of the package comment.
var overrides = []struct {
	name string
	set  func(cfg *Config, value string) error
}{
	{"ZKRECIPES_LOG_LEVEL", func(cfg *Config, v string) error {
		if cfg.LogLevel = hclog.LevelFromString(v); cfg.LogLevel == hclog.NoLevel {
			return fmt.Errorf("expected %s, not %q", levelExpected, v)
		}
		return nil
	}},
	{"ZKRECIPES_SERVERS", func(cfg *Config, v string) error {
		servers, chroot, err := recipes.ParseConnectString(v)
		cfg.ZooKeeper.Servers = servers
		if chroot != "" {
			cfg.ZooKeeper.Chroot = chroot
		}
		return err
	}},
	{"ZKRECIPES_CHROOT", func(cfg *Config, v string) error {
		cfg.ZooKeeper.Chroot = v
		normal, err := recipes.SessionConfig{Servers: anyServer, Chroot: v}.Normalize()
		if _, other, _ := recipes.ParseConnectString(os.Getenv("ZKRECIPES_SERVERS")); err == nil && other != "" && other != normal.Chroot {
			err = fmt.Errorf("%s disagrees with the chroot of ZKRECIPES_SERVERS, %s; give one of them", v, other)
		}
		return err
	}},
	{"ZKRECIPES_SESSION_TIMEOUT", func(cfg *Config, v string) error {
		d, ok := parseDuration(v)
		if !ok {
			return fmt.Errorf("expected %s, not %q", durationExpected, v)
		}
		cfg.ZooKeeper.SessionTimeout = d
		return nil
	}},
	{"ZKRECIPES_MAX_PACKET", func(cfg *Config, v string) (err error) {
		if cfg.ZooKeeper.MaxPacket, err = parseBytes(v); err != nil {
			return err
		}
		_, err = recipes.SessionConfig{Servers: anyServer, MaxPacket: cfg.ZooKeeper.MaxPacket}.Normalize()
		return err
	}},
	{"ZKRECIPES_MAX_LISTING", func(cfg *Config, v string) (err error) {
		if cfg.ZooKeeper.MaxListing, err = parseBytes(v); err != nil {
			return err
		}
		_, err = recipes.SessionConfig{Servers: anyServer, MaxListing: cfg.ZooKeeper.MaxListing}.Normalize()
		return err
	}},
	{"ZKRECIPES_ZOOKEEPER_ONLY", func(cfg *Config, v string) (err error) {
		if cfg.ZooKeeper.ZooKeeperOnly, err = strconv.ParseBool(v); err != nil {
			err = fmt.Errorf("expected true or false, not %q", v)
		}
		return err
	}},
	{"ZKRECIPES_AUTH_USER", func(cfg *Config, v string) error {
		digest(cfg).User = v
		return nil
	}},
	{"ZKRECIPES_AUTH_PASSWORD_FILE", func(cfg *Config, v string) error {
		password, err := secret.PrivateFile(v)
		digest(cfg).Password = secret.Password(password)
		return err
	}},
	{"ZKRECIPES_PLUGIN_COMMAND", func(cfg *Config, v string) error {
		cfg.Plugin.Path = v
		return nil
	}},
	{"ZKRECIPES_PLUGIN_CHECKSUM", func(cfg *Config, v string) error {
		if cfg.Plugin.Checksum = v; !isChecksum(v) {
			return fmt.Errorf("expected a SHA-256 of 64 hexadecimal digits, not %q", v)
		}
		return nil
	}},
}

func parseBytes(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, fmt.Errorf("expected a number of bytes, not %q", v)
	}
	return n, nil
}

func digest(cfg *Config) *recipes.Digest {
	if cfg.ZooKeeper.Digest == nil {
		cfg.ZooKeeper.Digest = &recipes.Digest{}
	}
	return cfg.ZooKeeper.Digest
}

// credentials checks the combination of the file and the variables.
func (r *reader) credentials() {
	digest := r.cfg.ZooKeeper.Digest
	if r.creator != nil && digest == nil && r.cfg.ZooKeeper.SASL == nil {
		r.wrong(r.creator.Expr.Range(), "Invalid acl", `"creator" needs an auth block, a sasl block or ZKRECIPES_AUTH_USER: without a user there is no creator.`)
	}
	if digest == nil || len(r.errs) > 0 {
		return
	}
	switch {
	case digest.User == "":
		r.errs = append(r.errs, errors.New("a password is set, but no user: set ZKRECIPES_AUTH_USER, or add an auth block"))
	case digest.Password == "":
		r.errs = append(r.errs, fmt.Errorf("user %q has no password: set ZKRECIPES_AUTH_PASSWORD_FILE, or add an auth block", digest.User))
	}
}

// environment applies the variables that are set and not empty.
func (r *reader) environment() {
	for _, o := range overrides {
		value := os.Getenv(o.name)
		if value == "" {
			continue
		}
		r.cfg.Variables = append(r.cfg.Variables, o.name)
		if err := o.set(&r.cfg, value); err != nil {
			r.errs = append(r.errs, fmt.Errorf("%s: %w", o.name, err))
		}
	}
}
