//go:build !linux

package main

// childrenCPU is not known here.
func childrenCPU() (seconds float64, ok bool) { return 0, false }

// filesystem is not known here.
func filesystem(string) string { return "" }
