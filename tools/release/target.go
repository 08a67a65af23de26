package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing/fstest"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
)

// programs are the binaries of a release.
var programs = []string{"zkrecipes", "zkrecipes-plugin", "zkbench"}

// documents are the files of each archive besides the binaries.
var documents = []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"}

// target is a release for one platform.
type target struct {
	version      string
	goos, goarch string
	time         time.Time // of every file
}

// name returns the name of the folder in the archive, and of the archive without its
// extension.
func (t target) name() string {
	return fmt.Sprintf("zkrecipes_%s_%s_%s", strings.TrimPrefix(t.version, "v"), t.goos, t.goarch)
}

func (t target) exe() string {
	if t.goos == "windows" {
		return ".exe"
	}
	return ""
}

// make builds the binaries in the directory dir. It writes the archive, the plugin's checksum and
// the bill of materials to the directory out, and for Linux the packages.
func (t target) make(ctx context.Context, out, dir string, guides fstest.MapFS) error {
	if err := t.build(ctx, dir); err != nil {
		return err
	}
	sum, err := host.Checksum(filepath.Join(dir, host.PluginName+t.exe()))
	if err != nil {
		return err
	}
	checksum := fmt.Appendf(nil, "# %s %s for %s/%s: for config.hcl.\nplugin {\n  checksum = \"%x\"\n}\n",
		host.PluginName, t.version, t.goos, t.goarch, sum)
	if err := os.WriteFile(filepath.Join(out, t.name()+".hcl"), checksum, 0o644); err != nil {
		return err
	}
	files, err := t.contents(dir)
	if err != nil {
		return err
	}
	files["plugin.hcl"] = &fstest.MapFile{Mode: 0o644, Data: checksum}
	if t.goos != "windows" { // which has none of these shells, and no man
		maps.Copy(files, guides)
	}
	if err := t.writeBOM(ctx, out, dir); err != nil {
		return err
	}
	if t.goos == "linux" {
		if err := t.packages(ctx, out, dir, guides); err != nil {
			return err
		}
	}
	return t.pack(out, files)
}

func (t target) build(ctx context.Context, dir string) error {
	const variable = modulePath + "/internal/version.release"
	args := []string{"build", "-trimpath", "-ldflags", "-s -w -X " + variable + "=" + t.version, "-o", dir + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, modulePath+"/cmd/"+program)
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root // the go.mod there has the versions of the release; that of the tools has others
	// The variables replace what the user has set: they would change the bytes.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.goos, "GOARCH="+t.goarch,
		"GOFLAGS=-buildvcs=true", "GOAMD64=v1", "GOARM64=v8.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// contents returns the files of the archive: the binaries in dir, and documents.
func (t target) contents(dir string) (fstest.MapFS, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	files := fstest.MapFS{}
	add := func(name, dir string, mode fs.FileMode) {
		data, failed := os.ReadFile(filepath.Join(dir, name))
		files[name], err = &fstest.MapFile{Mode: mode, Data: data}, errors.Join(err, failed)
	}
	for _, program := range programs {
		add(program+t.exe(), dir, 0o755)
	}
	for _, document := range documents {
		add(document, root, 0o644)
	}
	return files, err
}

// moduleRoot returns the directory of the repository, from the module tools or from its own.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", modulePath, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// pack writes the archive to the directory out: a zip for Windows, where many programs open
// no other format, and a tar otherwise.
func (t target) pack(out string, files fstest.MapFS) error {
	folder := fstest.MapFS{t.name(): {Mode: fs.ModeDir | 0o755, ModTime: t.time}}
	for name, f := range files {
		folder[t.name()+"/"+name] = &fstest.MapFile{Mode: f.Mode, Data: f.Data, ModTime: t.time}
	}
	var b bytes.Buffer
	if t.goos == "windows" {
		w := zip.NewWriter(&b)
		if err := errors.Join(w.AddFS(folder), w.Close()); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(out, t.name()+".zip"), b.Bytes(), 0o644)
	}
	archived, err := archive(folder)
	if err != nil {
		return err
	}
	zipped := gzip.NewWriter(&b)
	_, _ = zipped.Write(archived) // to memory, which does not fail
	_ = zipped.Close()
	return os.WriteFile(filepath.Join(out, t.name()+".tar.gz"), b.Bytes(), 0o644)
}

// writeSums writes SHA256SUMS, with the checksums of all files of the directory.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), sums.Bytes(), 0o644)
}
