//go:build !linux

package watchdog

// quitChildren does not know here what this process has started.
func quitChildren() int { return 0 }
