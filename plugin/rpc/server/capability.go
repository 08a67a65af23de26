package server

import "slices"

// Capabilities returns what Info tells: the names of what a Server can do, which
// are only ever added.
func Capabilities() []string { return slices.Clone(capabilities) }
