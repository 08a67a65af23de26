//go:build !linux

package watchdog

import "time"

// quitChildren finds no children on this system.
func quitChildren() int { return 0 }

// descendants finds none on this system.
func descendants() (pids []int, used time.Duration) { return nil, 0 }
