package server

import (
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
)

// capabilities are the names of what a Server offers. They are only ever added.
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
	"priority-lock",
	"contenders",
	carry.Capability,
	"dialects",
	carry.ConnectionCapability,
}

// Capabilities returns what Info tells: the names of what a Server can do, which
// are only ever added.
func Capabilities() []string { return slices.Clone(capabilities) }
