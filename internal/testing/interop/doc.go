// Package interop tests that our contenders stand in one line with those of Curator
// and kazoo, with the real libraries: see interop_test.go. It measures how fast their locks
// and ours pass from one contender to the next: see peers_bench_test.go. It has no code of
// its own.
package interop
