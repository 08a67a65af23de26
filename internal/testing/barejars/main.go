// Command barejars copies jars into a folder without their manifests:
//
//	barejars FOLDER JAR...
//
// The manifests of Debian's jars name others in /usr/share/java. A server of one version
// would load the classes of another that is installed there.
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "barejars:", err)
		os.Exit(1)
	}
}

func run(folder string, jars []string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for _, jar := range jars {
		if info, err := os.Lstat(jar); err != nil {
			return err
		} else if !info.Mode().IsRegular() {
			continue // a link to another jar of the list
		}
		if err := bare(filepath.Join(folder, filepath.Base(jar)), jar); err != nil {
			return fmt.Errorf("%s: %w", jar, err)
		}
	}
	return nil
}

func bare(to, from string) (err error) {
	r, err := zip.OpenReader(from)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	defer func() { err = errors.Join(err, w.Close(), f.Close()) }()
	for _, entry := range r.File {
		if entry.Name == "META-INF/MANIFEST.MF" {
			continue
		}
		if err := w.Copy(entry); err != nil {
			return err
		}
	}
	return nil
}
