//go:build race

// Package race lets tests check whether the race detector is on. It makes everything take
// more memory and time.
package race

// Enabled reports whether the program was built with the race detector.
const Enabled = true
