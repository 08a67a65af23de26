package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"
)

// guides returns the man pages and the completions, by their names in an archive. The programs
// in dir must run on this machine.
func (t target) guides(ctx context.Context, dir string) (fstest.MapFS, error) {
	pages, err := t.manPages(ctx, dir)
	if err != nil {
		return nil, err
	}
	files := fstest.MapFS{"man": {Mode: fs.ModeDir | 0o755}, "completions": {Mode: fs.ModeDir | 0o755}}
	for name, page := range pages {
		files["man/"+name] = page
	}
	for shell, name := range map[string]string{"bash": "zkrecipes.bash", "zsh": "_zkrecipes", "fish": "zkrecipes.fish"} {
		script, err := exec.CommandContext(ctx, filepath.Join(dir, "zkrecipes"), "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("zkrecipes completion %s: %w", shell, err)
		}
		files["completions/"+name] = &fstest.MapFile{Mode: 0o644, Data: script}
	}
	return files, nil
}

// packages writes a deb and an rpm with the binaries in dir to the directory out. nfpm takes
// the times of files from SOURCE_DATE_EPOCH.
func (t target) packages(ctx context.Context, out, dir string, guides fstest.MapFS) error {
	stage, err := os.MkdirTemp("", "zkrecipes-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	zipped := fstest.MapFS{}
	for name, f := range guides {
		if filepath.Ext(name) == ".1" { // Debian's policy demands it
			f, name = compress(f), name+".gz"
		}
		zipped[name] = f
	}
	if err := os.CopyFS(stage, zipped); err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	for _, kind := range []string{"deb", "rpm"} {
		_, err := tool(ctx, []string{
			"BIN=" + dir, "GUIDES=" + stage, "VERSION=" + t.version, "ARCH=" + t.goarch, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", t.time.Unix()),
		}, "nfpm", "package", "-f", "tools/release/packaging/nfpm.yaml", "-p", kind, "-t", out+string(filepath.Separator))
		if err != nil {
			return err
		}
	}
	return nil
}

// compress compresses a file. The result depends on nothing else.
func compress(f *fstest.MapFile) *fstest.MapFile {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write(f.Data) // to memory, which does not fail
	_ = w.Close()
	return &fstest.MapFile{Mode: f.Mode, Data: b.Bytes()}
}

// writeBOM writes the software bill of materials of the binaries in dir: the modules in any of
// them, with their licenses. (Cyclonedx-gomod can read go.mod instead, and misses modules that
// are linked.)
func (t target) writeBOM(ctx context.Context, out, dir string) error {
	var merged map[string]any
	components := map[string]any{} // by their references
	for _, program := range programs {
		// The modules were just built, so nothing has to be downloaded. The module itself may
		// not be published.
		found, err := tool(ctx, []string{"GOPROXY=off"}, "cyclonedx-gomod", "bin", "-json", "-licenses", "-std", "-short-purls",
			"-noserial", "-notimestamp", "-version", t.version, filepath.Join(dir, program+t.exe()))
		if err != nil {
			return err
		}
		var bom struct {
			Components []map[string]any
			All        map[string]any `json:"-"`
		}
		if err := errors.Join(json.Unmarshal(found, &bom), json.Unmarshal(found, &bom.All)); err != nil {
			return fmt.Errorf("cyclonedx-gomod: %w", err)
		}
		for _, c := range bom.Components {
			components[fmt.Sprint(c["bom-ref"])] = c
		}
		merged = bom.All
	}
	refs := slices.Sorted(maps.Keys(components))
	var list []any
	for _, ref := range refs {
		list = append(list, components[ref])
	}
	purl := "pkg:golang/" + modulePath + "@" + t.version
	// The tool would add its own checksum here, which depends on the machine that built it.
	merged["metadata"] = map[string]any{"component": map[string]any{
		"bom-ref": purl, "purl": purl, "type": "application", "name": modulePath, "version": t.version,
		"licenses": []any{map[string]any{"license": map[string]string{"id": "Apache-2.0"}}},
	}}
	merged["components"] = list
	merged["dependencies"] = []any{map[string]any{"ref": purl, "dependsOn": refs}}
	delete(merged, "compositions") // of a single binary
	text, err := json.MarshalIndent(merged, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, t.name()+".cdx.json"), append(text, '\n'), 0o644)
}

const modulePath = "github.com/zkrecipes/zkrecipes"

// tool runs a development tool in the root of the module, and returns its output. It is built
// first, without env, which may forbid downloads.
func tool(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	run := func(env []string, name string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = root, append(os.Environ(), env...), &said
		return cmd.Output()
	}
	built, err := run(nil, "go", "-C", "tools", "tool", "-n", name)
	if err == nil {
		built, err = run(env, strings.TrimSpace(string(built)), args...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", name, err, built, &said)
	}
	return built, nil
}

// sign returns the signature of a text by an SSH key, as of ssh-keygen -Y. It may ask for a
// passphrase on the terminal. Verifiers need no program beyond OpenSSH.
func sign(ctx context.Context, key string, text []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", key)
	cmd.Stdin = bytes.NewReader(text)
	var said bytes.Buffer
	cmd.Stderr = &said
	signature, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("-key %s: ssh-keygen cannot sign with it: %w: %s", key, err, strings.TrimSpace(said.String()))
	}
	return signature, nil
}

// signSums signs SHA256SUMS, or reports that it is not signed.
func signSums(ctx context.Context, out, key string, stdout io.Writer) error {
	if key == "" {
		fmt.Fprintln(stdout, "release: SHA256SUMS IS NOT SIGNED: give SIGNING_KEY, the file of an SSH key")
		return nil
	}
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		return err
	}
	signature, err := sign(ctx, key, sums)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS.sig"), signature, 0o644)
}
