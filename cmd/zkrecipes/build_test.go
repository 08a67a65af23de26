package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// TestBinariesOfOneBuildStartWithoutAWarning, even if they were built without a commit, as from
// a tarball. A plugin of another build causes a warning with advice.
func TestBinariesOfOneBuildStartWithoutAWarning(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows the mode does not show who may change the plugin")
	}
	t.Parallel()
	dir := t.TempDir()
	build := func(ldflags string, packages ...string) {
		t.Helper()
		cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-ldflags", "-s -w " + ldflags, "-o", dir + "/"}, packages...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	server := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	t.Cleanup(func() { server.Close() })
	said := func() string {
		t.Helper()
		cmd := exec.Command(filepath.Join(dir, "zkrecipes"), "contenders", "-servers", server.Addr(), "/l")
		cmd.Env = []string{"HOME=" + t.TempDir()}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		return stderr.String()
	}
	build("", "../zkrecipes", "../zkrecipes-plugin")
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	if text := said(); strings.Contains(text, "WARN") {
		t.Errorf("of one build: %s", text)
	}
	build("-X github.com/zkrecipes/zkrecipes/internal/version.sources=others", "../zkrecipes-plugin")
	if text := said(); !strings.Contains(text, "of another build") || !strings.Contains(text, "zkrecipes init") {
		t.Errorf("of two builds: %s", text)
	}
}
