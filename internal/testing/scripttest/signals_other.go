//go:build !unix

package scripttest

// ResetSignals has nothing to do where processes inherit no ignored signals.
func ResetSignals() {}
