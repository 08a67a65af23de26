package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
)

// moduleProxy writes the commit that is checked out as a version of the module, as a proxy serves it.
func moduleProxy(t *testing.T, version string) (dir string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "clone") // a work tree of git is no repository to package zip
	says(t, nil, "git", "clone", "--quiet", must.Get(moduleRoot())(t), root)
	dir = t.TempDir()
	at := filepath.Join(dir, filepath.FromSlash(modulePath), "@v")
	must.Do(t, os.MkdirAll(at, 0o755))
	f := must.Get(os.Create(filepath.Join(at, version+".zip")))(t)
	must.Do(t, zip.CreateFromVCS(f, module.Version{Path: modulePath, Version: version}, root, "HEAD", ""))
	must.Do(t, f.Close())
	must.Do(t, os.WriteFile(filepath.Join(at, "list"), []byte(version+"\n"), 0o644))
	must.Do(t, os.WriteFile(filepath.Join(at, version+".info"), fmt.Appendf(nil, `{"Version":%q}`, version), 0o644))
	must.Do(t, os.WriteFile(filepath.Join(at, version+".mod"), must.Get(os.ReadFile(filepath.Join(root, "go.mod")))(t), 0o644))
	return dir
}

// TestAReleaseByGoInstall does what the README says for a published version: the commit's files make a
// module, and the programs that go install builds of it know their version and work.
func TestAReleaseByGoInstall(t *testing.T) {
	testall.Require(t)
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", "-trimpath", modulePath+"/cmd/...@v0.9.8")
	cmd.Dir = t.TempDir() // outside of a module
	downloaded := filepath.Join(strings.TrimSpace(says(t, nil, "go", "env", "GOMODCACHE")), "cache", "download")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+bin, "GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw",
		"GOPROXY=file://"+moduleProxy(t, "v0.9.8")+",file://"+downloaded, "GONOSUMDB="+modulePath, "GOSUMDB=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkWorks(t, bin)
}
