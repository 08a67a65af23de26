package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestAFullDiskDoesNotCutFiles: the kernel refuses to write a byte to a file, as on a full disk.
func TestAFullDiskDoesNotCutFiles(t *testing.T) {
	home := t.TempDir()
	rc, page := filepath.Join(home, ".bashrc"), filepath.Join(home, "page.html")
	const content = "alias ll='ls -l'\n"
	for _, file := range []string{rc, page} {
		must.Do(t, os.WriteFile(file, []byte(content), 0o600))
	}
	run := func(script string, args ...string) error {
		c := exec.Command("sh", append([]string{"-c", script + ` exec zkrecipes "$@"`, "sh"}, args...)...)
		c.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=")
		return c.Run()
	}
	for file, args := range map[string][]string{rc: {"-autocomplete-install"}, page: {"audit", "-html", page, "/ordinary", "../../testdata/audit"}} {
		if err := run("ulimit -f 0;", args...); err == nil {
			t.Errorf("%q succeeds", args)
		}
		if got := string(must.Get(os.ReadFile(file))(t)); got != content {
			t.Errorf("after %q the file has %q", args, got)
		}
		must.Do(t, run("", args...))
		if got := string(must.Get(os.ReadFile(file))(t)); got == content {
			t.Errorf("%q writes nothing", args)
		}
	}
	added := string(must.Get(os.ReadFile(rc))(t))
	if err := run("ulimit -f 0;", "-autocomplete-uninstall"); err == nil {
		t.Error("-autocomplete-uninstall succeeds")
	}
	if got := string(must.Get(os.ReadFile(rc))(t)); got != added {
		t.Errorf("after -autocomplete-uninstall the file has %q", got)
	}
}
