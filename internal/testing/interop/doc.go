// Package interop tests our contenders in one wait queue with those of the real Curator,
// kazoo (interop_test.go) and go-zookeeper (gozookeeper_test.go). It measures how fast their
// locks and ours pass from one contender to the next (peers_bench_test.go), how fast the other
// recipes are (recipes_bench_test.go), and what a held lock costs
// (holds_bench_linux_test.go). It contains only tests. In its comments, ours is a contender of this library, and theirs is one of another
// library.
package interop
