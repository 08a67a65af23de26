package host

import (
	"path/filepath"

	"github.com/hashicorp/go-hclog"
)

// logger is go-plugin's logger. go-plugin reports the end of a process, and of the connections
// to it, as faults. If this host has killed the process, they are not faults, and logger logs
// them at the debug level.
type logger struct {
	hclog.Logger
	of *launched
}

func (l logger) Error(msg string, args ...any) {
	if l.expected() {
		l.Debug(msg, args...)
		return
	}
	l.Logger.Error(msg, args...)
}

func (l logger) Warn(msg string, args ...any) {
	if l.expected() {
		l.Debug(msg, args...)
		return
	}
	l.Logger.Warn(msg, args...)
}

// expected reports whether this host has killed the process.
func (l logger) expected() bool {
	p := l.of.proc()
	return p != nil && p.endedByHost()
}

// Named returns the logger of a part of go-plugin. What the plugin itself logs, under the name
// of its executable, keeps its level.
func (l logger) Named(name string) hclog.Logger {
	named := l.Logger.Named(name)
	if name == filepath.Base(l.of.cfg.Path) {
		return named
	}
	return logger{named, l.of}
}
