//go:build !linux

package main

// filesystem is not known here.
func filesystem(string) string { return "" }
