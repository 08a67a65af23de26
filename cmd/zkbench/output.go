package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// output is the file of a flag such as -out. It is written beside its final place and
// moved there when it is complete. So nobody ever finds half a file, and a run that
// fails leaves the former one alone.
type output struct {
	*os.File
	flag  string // that named it
	final string // "" if it is written in place: it is not a regular file, or is continued
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

// recordsBegin is how a file of records begins. What begins otherwise is somebody's
// file, of which nothing may be taken away.
var recordsBegin = []byte(`{"zkbench":`)

// continueOutput opens a file of records to go on at its end, and returns the runs
// that it has. The end of a line that a crash has cut short is taken away.
func continueOutput(flag, name string) (*output, []record.Run, error) {
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s cannot be continued: %w", flag, err)
	}
	if !bytes.HasPrefix(text, recordsBegin[:min(len(text), len(recordsBegin))]) {
		return nil, nil, fmt.Errorf("%s cannot be continued: %s does not begin as records do; is it another file?", flag, name)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	runs, err := record.Read(bytes.NewReader(text))
	if err != nil && !errors.Is(err, record.ErrNoRecords) {
		return nil, nil, fmt.Errorf("%s cannot be continued: %s: %w", flag, name, err)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, nil, fmt.Errorf("%s cannot be written: %w", flag, err)
	}
	o := &output{File: f, flag: flag}
	if err := f.Truncate(int64(len(text))); err != nil {
		o.discard()
		return nil, nil, fmt.Errorf("%s cannot be continued: %w", flag, err)
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		o.discard()
		return nil, nil, fmt.Errorf("%s cannot be continued: %w", flag, err)
	}
	return o, runs, nil
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
