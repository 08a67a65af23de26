// Package uptime has a test that runs for hours: a supervised plugin is upgraded again and again
// while sessions work. Nothing may accumulate. See .ci/suite uptime.
package uptime
