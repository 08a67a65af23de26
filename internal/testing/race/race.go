//go:build race

// Package race tells tests whether the race detector watches them. With it everything
// takes more memory and time.
package race

// Enabled is whether the race detector is part of the program.
const Enabled = true
