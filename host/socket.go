package host

import (
	"fmt"
	"os"
	"runtime"
)

// socketTail is the longest that go-plugin adds to a temporary directory:
// "/plugin-dir" and "/plugin", each with a random number of 32 bits.
const socketTail = len("/plugin-dir4294967295/plugin4294967295")

// maxSocketPath is how long the path of a Unix socket can be: 108 bytes with
// the final zero on Linux, 104 elsewhere.
const maxSocketPath = 103

// socketBase returns a directory in which go-plugin can make a private one for the
// socket, such that the socket's path is not too long.
func socketBase() (string, error) {
	if runtime.GOOS == "windows" {
		return os.TempDir(), nil // plugins listen on TCP there
	}
	for _, dir := range []string{os.TempDir(), os.Getenv("XDG_RUNTIME_DIR"), "/tmp"} {
		if dir == "" || len(dir)+socketTail > maxSocketPath {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no directory for the plugin's socket: %s is too long or missing, and so is /tmp; set TMPDIR to a directory of at most %d bytes",
		os.TempDir(), maxSocketPath-socketTail)
}
