//go:build race

package simulation

// With the race detector Go's scheduler chooses at random.
const randomScheduler = true
