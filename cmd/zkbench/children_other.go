//go:build !linux

package main

// childrenCPU is not known here.
func childrenCPU() (seconds float64, ok bool) { return 0, false }
