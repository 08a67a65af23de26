package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// make builds the binaries, and writes the archive and the plugin's checksum to the
// directory out.
func (t target) make(ctx context.Context, out string) error {
	dir, err := os.MkdirTemp("", "zkrecipes-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
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
	return t.pack(out, append(files, file{name: "plugin.hcl", mode: 0o644, data: checksum}))
}

func (t target) build(ctx context.Context, dir string) error {
	const variable = "github.com/zkrecipes/zkrecipes/internal/version.release"
	args := []string{"build", "-trimpath", "-ldflags", "-s -w -X " + variable + "=" + t.version, "-o", dir + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, "github.com/zkrecipes/zkrecipes/cmd/"+program)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.goos, "GOARCH="+t.goarch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// contents returns the files of the archive: the binaries in dir, and documents.
func (t target) contents(dir string) ([]file, error) {
	var files []file
	for _, program := range programs {
		data, err := os.ReadFile(filepath.Join(dir, program+t.exe()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: program + t.exe(), mode: 0o755, data: data})
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		data, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: document, mode: 0o644, data: data})
	}
	return files, nil
}

// moduleRoot returns the directory of go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
