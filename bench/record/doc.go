// Package record keeps what trials measured. [JSONWriter] and [Read] are its file
// format. [Writer] writes the Go benchmark format, for benchstat and other programs.
//
// A [Record] is complete (whole histograms, all counters); a rendering is a view
// of it. [Record.Metrics] is the one place where figures are derived.
package record
