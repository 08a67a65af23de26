package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// named is a file and the flag that names it.
type named struct{ flag, file string }

// distinct says which two flags name the same file: what is written to one would be
// lost, or mixed with the other's, when everything has been measured. A device takes
// what comes.
func distinct(files ...named) error {
	flags := map[string]string{}
	for _, f := range files {
		if f.file == "" {
			continue
		}
		info, err := os.Stat(f.file)
		if err == nil && !info.Mode().IsRegular() {
			continue
		}
		path := resolved(f.file)
		if other, ok := flags[path]; ok {
			return fmt.Errorf("%s and %s are both %s; give two files", other, f.flag, f.file)
		}
		flags[path] = f.flag
	}
	return nil
}

// resolved is the path of a file, which need not exist, without links.
func resolved(file string) string {
	path, err := filepath.Abs(file)
	if err != nil {
		path = file
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path
	}
	return filepath.Join(dir, filepath.Base(path))
}
