//go:build !race

package simulation

const randomScheduler = false
