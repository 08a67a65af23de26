// Package record keeps what trials measured, and renders it: in the Go benchmark
// format for benchstat and other programs ([Writer]), and as a short table for
// people ([Table]).
//
// A [Record] is complete (whole histograms, all counters); a rendering is a view
// of it. [Record.Metrics] is the one place where figures are derived.
package record
