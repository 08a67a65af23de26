//go:build !unix

package probe

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
