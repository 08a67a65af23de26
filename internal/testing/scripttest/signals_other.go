//go:build !unix

package scripttest

// ResetSignals does nothing on systems where processes inherit no ignored signals.
func ResetSignals() {}
