// Package uptime has a test of hours: a supervised plugin that is upgraded again and again while
// sessions work. Nothing may accumulate. See the target test-uptime in the Makefile.
package uptime
