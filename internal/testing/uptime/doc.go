// Package uptime has a test of hours: a supervised plugin that is upgraded again and again while
// sessions work. Nothing may accumulate. See .ci/suite uptime.
package uptime
