package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// output is the file of a flag such as -out. It is written beside its final place and moved
// there when it is complete, so that nobody ever finds half a file, and a run
// that fails leaves the former one alone.
type output struct {
	*os.File
	flag  string // that named it
	final string // "" if the file is not a regular one and is written in place
}

// createOutput opens the file, so that what cannot be written is known before
// anything is measured. No name is no file: the output is nil.
func createOutput(flag, name string) (*output, error) {
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s %s is a directory", flag, name)
	case err == nil && !info.Mode().IsRegular():
		// A device or a pipe must not be replaced.
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &output{File: f, flag: flag}, err
	case err == nil:
		// A link stays a link.
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	}
	partial := fmt.Sprintf("%s.partial-%d", name, os.Getpid())
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", flag, err)
	}
	return &output{File: f, flag: flag, final: name}, nil
}

// commit puts the file into its place.
func (o *output) commit() error {
	if o == nil {
		return nil
	}
	if o.final == "" {
		return o.Close()
	}
	if err := errors.Join(o.Sync(), o.Close()); err != nil {
		return fmt.Errorf("write %s: %w", o.flag, err)
	}
	if err := os.Rename(o.Name(), o.final); err != nil {
		return fmt.Errorf("write %s: %w", o.flag, err)
	}
	return nil
}

// discard leaves nothing behind, unless the file was committed.
func (o *output) discard() {
	if o == nil {
		return
	}
	o.Close() // of no interest: what was written is thrown away
	if o.final != "" {
		os.Remove(o.Name())
	}
}
