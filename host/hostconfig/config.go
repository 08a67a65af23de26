package hostconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// FileEnv is the environment variable with the path of the file.
const FileEnv = "ZKRECIPES_CONFIG"

// Config is a configuration that Load has read and checked.
type Config struct {
	// Plugin is for host.Launch. Its Logger is nil.
	Plugin host.Config
	// ZooKeeper is for Plugin.Open. It has at least one server.
	ZooKeeper recipes.SessionConfig
	// LogLevel is the level to log at, hclog.Warn by default.
	LogLevel hclog.Level

	// File is the file that was read, or "".
	File string
	// Variables are the names of the environment variables that overrode a value, in the
	// order of the package comment.
	Variables []string
}

// Load reads the file at path and the environment. If path is "", it reads the file that
// FileEnv names, or else ~/.zkrecipes.d/config.hcl if that exists. An error has a line for
// each mistake, with its position and what was expected there. The returned Config then
// contains the values that could be read.
func Load(path string) (Config, error) {
	path, err := filePath(path)
	if err != nil {
		return Config{}, fmt.Errorf("invalid configuration: %w", err)
	}
	r := &reader{cfg: Config{File: path, LogLevel: hclog.Warn}}
	if path != "" {
		r.file(path)
	}
	r.environment()
	r.credentials()
	if err := r.err(); err != nil {
		return r.cfg, fmt.Errorf("invalid configuration:\n%w", err)
	}
	if len(r.cfg.ZooKeeper.Servers) == 0 {
		return r.cfg, fmt.Errorf("invalid configuration: no ZooKeeper servers: set %s=host:port, or in %s write zookeeper { servers = [\"host:port\"] }",
			"ZKRECIPES_SERVERS", orDefault(path))
	}
	if _, err := r.cfg.ZooKeeper.Normalize(); err != nil {
		return r.cfg, fmt.Errorf("invalid configuration: %w", err)
	}
	return r.cfg, nil
}

// filePath returns the file to read, or "" for none. It does not check that a file that the
// caller or FileEnv names exists: reading it reports that.
func filePath(path string) (string, error) {
	if path == "" {
		path = os.Getenv(FileEnv)
	}
	if path != "" {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", nil // without a home there is no default file
	}
	path = filepath.Join(home, defaultFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return path, nil
}

var defaultFile = filepath.Join(".zkrecipes.d", "config.hcl")

func orDefault(path string) string {
	if path == "" {
		return filepath.Join("~", defaultFile)
	}
	return path
}
