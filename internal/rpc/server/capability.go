package server

import "slices"

// capabilities are names of what a Server can do: its recipes, and what requests
// came to know later that must not be ignored. They are only ever added.
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
	"lock-cohort", // AcquireRequest.cohort
}

// Capabilities returns what Info tells: the names of what a Server can do, which
// are only ever added.
func Capabilities() []string { return slices.Clone(capabilities) }
