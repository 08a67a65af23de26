package main

import "testing"

func TestADirectoryHasAFileSystem(t *testing.T) {
	for dir, want := range map[string]bool{"/": true, t.TempDir(): true, "/proc/self": true, "/no such directory": false} {
		if got := filesystem(dir); (got != "") != want {
			t.Errorf("%s: %q", dir, got)
		}
	}
	if got := filesystem("/proc/self"); got != "proc on proc" {
		t.Errorf("/proc: %q", got)
	}
}
