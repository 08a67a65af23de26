//go:build !linux

package bench

import "time"

// cpu is not known here.
func (t Transport) cpu() (time.Duration, bool) { return 0, false }
