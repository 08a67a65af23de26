//go:build unix

package host

import (
	"os"
	"strings"
	"testing"
)

// The path of a Unix socket has room for 108 bytes or fewer.
func TestASocketIsCreatedWhereItsPathFits(t *testing.T) {
	short, err := os.MkdirTemp("/tmp", "zk")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.Remove(short) })
	long := "/tmp/" + strings.Repeat("long", 30)
	for _, tt := range []struct{ temp, runtime, want string }{
		{short, "/nowhere", short},
		{long, short, short},
		{"/nowhere", short, short},
		{long, long, "/tmp"},
		{long, "", "/tmp"},
	} {
		t.Setenv("TMPDIR", tt.temp)
		t.Setenv("XDG_RUNTIME_DIR", tt.runtime)
		if got, err := socketBase(); err != nil || got != tt.want {
			t.Errorf("TMPDIR %s, XDG_RUNTIME_DIR %s: %s, %v; want %s", tt.temp, tt.runtime, got, err, tt.want)
		}
	}
}
