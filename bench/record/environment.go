package record

import (
	"runtime"
	"strconv"

	"golang.org/x/perf/benchfmt"
)

// Environment is what all records of a run have in common. It has nothing that
// differs between two runs of the same thing (ports, times, seeds): benchstat
// keeps results of different configurations in different tables.
type Environment struct {
	OS, Arch string
	Package  string
	CPU      string // "" where it cannot be found out
	Server   Server
	// Details are facts that are kept with the records but are no part of the
	// benchmark format, because they may differ between runs of the same thing:
	// Go's version, memory, the flags, what an fsync costs, the servers'
	// configuration.
	Details map[string]string `json:",omitempty"`
}

// Server describes what the contenders talked to.
type Server struct {
	Version string // such as "3.8.0"; "" if it does not tell
	Servers int    // how many there are, not where
	Mode    string // "embedded", "standalone" or "ensemble"; "" if it is not known
}

// Here returns the environment of this process against that server.
func Here(server Server) Environment {
	return Environment{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: cpu(), Server: server,
		Package: "github.com/zkrecipes/zkrecipes/bench",
	}
}

// config returns the configuration lines, without those that have no value.
func (e Environment) config() []benchfmt.Config {
	var config []benchfmt.Config
	for _, c := range []struct{ key, value string }{
		{"goos", e.OS}, {"goarch", e.Arch}, {"pkg", e.Package}, {"cpu", e.CPU},
		{"zk-version", e.Server.Version},
		{"zk-servers", strconv.Itoa(e.Server.Servers)},
		{"zk-mode", e.Server.Mode},
	} {
		if c.value != "" {
			config = append(config, benchfmt.Config{Key: c.key, Value: []byte(c.value), File: true})
		}
	}
	return config
}
