package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// inImage are the programs of the image. zkbench measures servers, which needs no container.
var inImage = []string{"zkrecipes", "zkrecipes-plugin"}

// imageUser is the user and the group of the image's process. It is a number, because
// Kubernetes can only see by a number that it is not root.
const imageUser = "65532:65532"

// image returns the image of the binaries in dir, for an operating system without a container
// engine: one layer with two programs, their licence and /tmp.
//
// It has no shell, no users and no authorities that sign certificates. The servers of an
// ensemble have certificates of its own authority, which the configuration names (ca_file).
// A user is needed nowhere: the programs ask only for their number.
func (t target) image(dir string) (v1.Image, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	files := fstest.MapFS{"tmp": t.folder(fs.ModeSticky | 0o777)} // for the plugin's socket
	for _, d := range []string{"usr", "usr/bin", "usr/share", "usr/share/doc", "usr/share/doc/zkrecipes"} {
		files[d] = t.folder(0o755)
	}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		if files["usr/share/doc/zkrecipes/"+name], err = t.file(filepath.Join(root, name), 0o644); err != nil {
			return nil, err
		}
	}
	for _, program := range inImage {
		if files["usr/bin/"+program], err = t.file(filepath.Join(dir, program), 0o755); err != nil {
			return nil, err
		}
	}
	archived, err := archive(files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archived)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: t.time}, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = t.goos, t.goarch, v1.Time{Time: t.time}
	config.Config = v1.Config{
		User:       imageUser,
		Entrypoint: []string{"/usr/bin/zkrecipes"},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, // that of most images: commands come from images over this one
		Labels: map[string]string{
			"org.opencontainers.image.title":       "zkrecipes",
			"org.opencontainers.image.description": abouts["zkrecipes"],
			"org.opencontainers.image.version":     strings.TrimPrefix(t.version, "v"),
			"org.opencontainers.image.source":      "https://" + modulePath,
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

func (t target) file(name string, mode fs.FileMode) (*fstest.MapFile, error) {
	data, err := os.ReadFile(name)
	return &fstest.MapFile{Mode: mode, Data: data, ModTime: t.time}, err
}

func (t target) folder(mode fs.FileMode) *fstest.MapFile {
	return &fstest.MapFile{Mode: fs.ModeDir | mode, ModTime: t.time}
}

// archive returns a tar. A file system in memory has no owners, so all files belong to root.
func archive(files fstest.MapFS) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := errors.Join(w.AddFS(files), w.Close())
	return b.Bytes(), err
}

// imagesName is the name of the file with the images of a version.
func imagesName(version string) string {
	return fmt.Sprintf("zkrecipes_%s_oci.tar", strings.TrimPrefix(version, "v"))
}

// names are the annotations that name a version's images. The first is a tag only, because the
// registry is for the user to choose. Podman and containerd load an archive under the second, as
// docker build names an image zkrecipes:VERSION.
func names(version string) map[string]string {
	tag := strings.TrimPrefix(version, "v")
	return map[string]string{
		"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name":          "docker.io/library/zkrecipes:" + tag,
	}
}

// writeImages writes an OCI archive to the directory out: an index with an image for each
// architecture, from which a container engine takes its own.
func writeImages(out string, here target, images []v1.Image) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture},
		}})
	}
	dir, err := os.MkdirTemp("", "zkrecipes-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := to.AppendIndex(index, layout.WithAnnotations(names(here.version))); err != nil {
		return err
	}
	files := fstest.MapFS{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			files[filepath.ToSlash(name)] = here.folder(0o755)
			return nil
		}
		files[filepath.ToSlash(name)], err = here.file(path, 0o644)
		return err
	})
	if err != nil {
		return err
	}
	archived, err := archive(files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, imagesName(here.version)), archived, 0o644)
}
