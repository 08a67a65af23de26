//go:build !linux

package main

func childrenCPU() (seconds float64, ok bool) { return 0, false }
func filesystem(string) string                { return "" }
