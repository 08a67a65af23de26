//go:build !linux

package job

// Reap runs main, and returns its exit code.
func Reap(main func() int) int { return main() }
