package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// makeImages writes images of two architectures. Their programs are text.
func makeImages(t *testing.T) (file string) {
	var images []v1.Image
	var here target
	for _, arch := range []string{"amd64", "arm64"} {
		here = target{version: "v1.2.3", goos: "linux", goarch: arch, time: time.Date(2026, 11, 22, 9, 41, 12, 0, time.UTC)}
		dir := t.TempDir()
		for _, program := range programs {
			must.Do(t, os.WriteFile(filepath.Join(dir, program), []byte(program+" for "+arch), 0o700))
		}
		images = append(images, must.Get(here.image(dir))(t))
	}
	out := t.TempDir()
	must.Do(t, writeImages(out, here, images))
	return filepath.Join(out, "zkrecipes_1.2.3_oci.tar")
}

// load returns the image for an architecture, as a container engine loads it.
func load(t *testing.T, file, arch string) v1.Image {
	t.Helper()
	dir := t.TempDir()
	untar(t, must.Get(os.Open(file))(t), dir)
	outer := must.Get(must.Get(layout.ImageIndexFromPath(dir))(t).IndexManifest())(t)
	if len(outer.Manifests) != 1 {
		t.Fatalf("the archive has %+v", outer.Manifests)
	}
	index := must.Get(must.Get(layout.ImageIndexFromPath(dir))(t).ImageIndex(outer.Manifests[0].Digest))(t)
	for _, m := range must.Get(index.IndexManifest())(t).Manifests {
		if m.Platform.OS == "linux" && m.Platform.Architecture == arch {
			return must.Get(index.Image(m.Digest))(t)
		}
	}
	t.Fatalf("there is no image for %s", arch)
	return nil
}

// untar unpacks an archive, and closes it.
func untar(t *testing.T, from io.ReadCloser, dir string) {
	t.Helper()
	defer from.Close()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		must.Do(t, err)
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			must.Do(t, os.MkdirAll(name, 0o755))
		} else {
			must.Do(t, os.WriteFile(name, must.Get(io.ReadAll(r))(t), 0o644))
		}
		must.Do(t, os.Chmod(name, h.FileInfo().Mode())) // whatever the umask
	}
}

// An image has the tool and its plugin for its architecture, and no user but a number.
func TestAnImage(t *testing.T) {
	file := makeImages(t)
	for _, arch := range []string{"amd64", "arm64"} {
		image := load(t, file, arch)
		config := must.Get(image.ConfigFile())(t)
		if got := fmt.Sprint(config.OS, config.Architecture, config.Config.User, config.Config.Entrypoint, config.Created.UTC()); got != "linux"+arch+"65532:65532[/usr/bin/zkrecipes] 2026-11-22 09:41:12 +0000 UTC" {
			t.Errorf("%s: %s", arch, got)
		}
		if version := config.Config.Labels["org.opencontainers.image.version"]; version != "1.2.3" {
			t.Errorf("%s: the label of the version is %q", arch, version)
		}
		var got []string
		for r := tar.NewReader(mutate.Extract(image)); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			must.Do(t, err)
			line := fmt.Sprintf("%s %v %d:%d%s%s", h.Name, h.FileInfo().Mode(), h.Uid, h.Gid, h.Uname, h.Gname)
			if !h.ModTime.Equal(config.Created.Time) {
				t.Errorf("%s: %s has the time %v", arch, h.Name, h.ModTime)
			}
			if strings.HasPrefix(h.Name, "usr/bin/z") {
				line += fmt.Sprintf(" %s", must.Get(io.ReadAll(r))(t))
			}
			got = append(got, line)
		}
		want := []string{
			"tmp dtrwxrwxrwx 0:0", "usr drwxr-xr-x 0:0", "usr/bin drwxr-xr-x 0:0",
			"usr/bin/zkrecipes -rwxr-xr-x 0:0 zkrecipes for " + arch, "usr/bin/zkrecipes-plugin -rwxr-xr-x 0:0 zkrecipes-plugin for " + arch,
			"usr/share drwxr-xr-x 0:0", "usr/share/doc drwxr-xr-x 0:0", "usr/share/doc/zkrecipes drwxr-xr-x 0:0",
			"usr/share/doc/zkrecipes/LICENSE -rw-r--r-- 0:0", "usr/share/doc/zkrecipes/NOTICE -rw-r--r-- 0:0",
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s has\n%s\nnot\n%s", arch, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Podman and containerd load an archive under io.containerd.image.name. A tag alone would become the
// repository: localhost/1.2.3:latest.
func TestImagesHaveANameToLoadThemUnder(t *testing.T) {
	dir := t.TempDir()
	untar(t, must.Get(os.Open(makeImages(t)))(t), dir)
	index := must.Get(must.Get(layout.ImageIndexFromPath(dir))(t).IndexManifest())(t)
	got := index.Manifests[0].Annotations
	if want := map[string]string{"org.opencontainers.image.ref.name": "1.2.3", "io.containerd.image.name": "docker.io/library/zkrecipes:1.2.3"}; !maps.Equal(got, want) {
		t.Errorf("the annotations are %q, not %q", got, want)
	}
}

func TestAnImageDependsOnItsFilesOnly(t *testing.T) {
	if once, again := makeImages(t), makeImages(t); checksum(t, once) != checksum(t, again) {
		t.Error("the same files give another image")
	}
}

func TestAnImageNeedsItsPrograms(t *testing.T) {
	if _, err := (target{goos: "linux"}).image(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without binaries: %v", err)
	}
}
