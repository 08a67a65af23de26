//go:build !linux

package scripttest

func quitAll(string) {}
func killAll(string) {}
