package server

import (
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
)

// capabilities are the names of what a Server offers.
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
	carry.Capability,
	resumeCapability,
}

// resumeCapability is that of plugins that can resume sessions: Config.Resume.
const resumeCapability = "resume"

// Capabilities returns what Info tells: the names of what a Server of the configuration
// can do, which are only ever added.
func (c Config) Capabilities() []string {
	return slices.DeleteFunc(slices.Clone(capabilities), func(name string) bool { return name == resumeCapability && c.Resume == nil })
}
