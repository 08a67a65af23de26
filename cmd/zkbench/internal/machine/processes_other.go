//go:build !linux

package machine

// ServersCPU reports that the time is unknown on this system.
func ServersCPU() (seconds float64, ok bool) { return 0, false }
func filesystem(string) string               { return "" }
