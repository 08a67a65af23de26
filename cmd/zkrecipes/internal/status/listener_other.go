//go:build !unix

package status

// scarce returns false: this system has no limit of descriptors.
func scarce() bool { return false }
