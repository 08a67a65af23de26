package server

import (
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
)

// capabilities are the names of a Server's capabilities.
var capabilities = []string{
	"lock",
	"election",
	"queue",
	"priority-queue",
	"transaction",
	"group",
	"barrier",
	"double-barrier",
	"names",
	"configuration",
	"counter",
	"latch",
	"shared-lock",
	"semaphore",
	"slots",
	"priority-lock",
	"contenders",
	"dialects",
	"sasl",
	carry.Capability,
	resumeCapability,
}

// resumeCapability is the capability of plugins that can resume sessions (Config.Resume).
const resumeCapability = "resume"

// Capabilities returns the names in Info: the capabilities of a Server with this
// configuration. Names are never removed.
func (c Config) Capabilities() []string {
	return slices.DeleteFunc(slices.Clone(capabilities), func(name string) bool { return name == resumeCapability && c.Resume == nil })
}
