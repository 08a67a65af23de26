//go:build !linux

package relay

import "time"

func nap(d time.Duration) { time.Sleep(d) }
