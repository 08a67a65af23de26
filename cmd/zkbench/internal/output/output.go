// Package output has the files that zkbench writes: complete or not at all.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
)

// File is the file of a flag such as -out. It is written beside its final path and moved there
// when it is complete. So no reader finds half a file, and a run that fails before its first
// result leaves an existing file unchanged.
type File struct {
	*os.File
	flag  string // the flag that names it
	final string // "" if it is written in place: it is not a regular file, or is continued
}

// Set has files that are complete together.
type Set struct {
	all []*File
	Err error // the first; exit.Usage if a file could not be opened
}

// Create opens a file, so that an unwritable path is reported before the first trial. If name is
// "", or after an error, the output is nil.
func (o *Set) Create(flag, name string) *File {
	if name == "" || o.Err != nil {
		return nil
	}
	out, err := create(flag, name)
	if err != nil {
		o.Err = exit.Usage(err)
		return nil
	}
	o.all = append(o.all, out)
	return out
}

// Commit moves the files to their final paths.
func (o *Set) Commit() error {
	err := o.Err
	for _, out := range o.all {
		if o.Err == nil {
			err = errors.Join(err, out.commit())
		}
	}
	return err
}

// Discard removes the files that were not committed.
func (o *Set) Discard() error {
	for _, out := range o.all {
		out.Close() // the content is dropped, so an error does not matter
		if out.final != "" {
			os.Remove(out.Name())
		}
	}
	return nil
}

func create(flag, name string) (*File, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s %s is a directory", flag, name)
	case err == nil && !info.Mode().IsRegular():
		// A device or a pipe must not be replaced.
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &File{File: f, flag: flag}, err
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
	return &File{File: f, flag: flag, final: name}, nil
}

// recordsBegin is how each file of records begins. resume must not truncate any other
// file.
var recordsBegin = []byte(`{"zkbench":`)

// resume opens a file of records to append to it, and returns its runs. It removes a last
// line that a crash has cut short.
func resume(flag, name string) (*File, []record.Run, error) {
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
	if err = f.Truncate(int64(len(text))); err == nil {
		_, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s cannot be continued: %w", flag, err)
	}
	return &File{File: f, flag: flag}, runs, nil
}

func (o *File) commit() error {
	if o.final == "" {
		return o.Close()
	}
	err := errors.Join(o.Sync(), o.Close())
	if err == nil {
		err = os.Rename(o.Name(), o.final)
	}
	if err != nil {
		o.final = "" // Discard must not remove the only copy
		return fmt.Errorf("write %s: %w; it is in %s", o.flag, err, o.Name())
	}
	return nil
}

// Write removes what it has written if it fails, for example on a full disk. Half a record would
// make the file unreadable.
func (o *File) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if end, seekErr := o.Seek(0, io.SeekCurrent); err != nil && seekErr == nil {
		_ = o.Truncate(end - int64(n)) // err is reported in any case
	}
	return n, err
}

// Named is a file with the flag that names it.
type Named struct{ Flag, File string }

// Distinct returns an error if two flags name the same file, because the results of one would be
// lost, or mixed with those of the other. Two flags may name the same device.
func Distinct(files ...Named) error {
	flags := map[string]string{}
	for _, f := range files {
		if f.File == "" {
			continue
		}
		info, err := os.Stat(f.File)
		if err == nil && !info.Mode().IsRegular() {
			continue
		}
		path := resolved(f.File)
		if other, ok := flags[path]; ok {
			return fmt.Errorf("%s and %s are both %s; give two files", other, f.Flag, f.File)
		}
		flags[path] = f.Flag
	}
	return nil
}

// resolved returns the path of a file without links. The file need not exist.
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

// Sink writes the records of an experiment: to -out, or to stdout without it, in the benchmark
// format, and to -record as JSON lines.
type Sink struct {
	files       Set
	out, record *File
	text        *record.Writer
	lines       *record.JSONWriter // nil without -record
	wrote       bool               // a record is in -record, in -out or on stdout
}

// OpenSink opens the files of -out and -record, each "" for none. If again is set, by -resume,
// it returns the runs in the file of -record, and appends each new record at once. An error is
// exit.Usage.
func OpenSink(out, records string, again bool) (_ *Sink, former []record.Run, err error) {
	var s Sink
	s.out = s.files.Create("-out", out)
	if !again {
		s.record = s.files.Create("-record", records)
	} else if s.record, former, err = resume("-record", records); err == nil {
		s.files.all = append(s.files.all, s.record)
	} else if s.files.Err == nil {
		s.files.Err = exit.Usage(err)
	}
	if s.files.Err != nil {
		s.files.Discard()
	}
	return &s, former, s.files.Err
}

// Describe sets the environment of the records. It must be called before Write.
func (s *Sink) Describe(stdout io.Writer, env record.Environment) {
	s.text = &record.Writer{Output: stdout, Environment: env}
	if s.out != nil {
		s.text = &record.Writer{Output: s.out, Environment: env}
	}
	if s.record != nil {
		s.lines = &record.JSONWriter{Output: s.record, Environment: env}
	}
}

// Write writes a record.
func (s *Sink) Write(r record.Record) error {
	if s.lines != nil {
		if err := s.lines.Write(r); err != nil {
			return err
		}
		s.wrote = true
	}
	err := s.text.Write(r)
	s.wrote = s.wrote || err == nil
	return err
}

// Wrote reports whether a record was written to -record, to -out or to stdout.
func (s *Sink) Wrote() bool { return s.wrote }

// Discard removes the files that were not committed.
func (s *Sink) Discard() error { return s.files.Discard() }

// Commit moves the files to their final paths. An error is exit.Unwritten.
func (s *Sink) Commit() error {
	if err := s.files.Commit(); err != nil {
		return exit.Unwritten(err)
	}
	return nil
}

// Keep writes records to the files, but not to stdout, and commits them. An error is exit.Unwritten.
func (s *Sink) Keep(records []record.Record, env record.Environment) error {
	if len(records) == 0 {
		return nil
	}
	s.Describe(io.Discard, env)
	for _, r := range records {
		if err := s.Write(r); err != nil {
			return exit.Unwritten(err)
		}
	}
	return s.Commit()
}

// Profiles starts the CPU profile. stop ends it and writes the heap profile. If a file name
// is "", that profile is not written. An error comes from exit.Usage.
func Profiles(cpu, heap string) (stop func() error, err error) {
	var files Set
	c, h := files.Create("-cpuprofile", cpu), files.Create("-memprofile", heap)
	if err = files.Err; err == nil && c != nil {
		err = pprof.StartCPUProfile(c)
	}
	if err != nil {
		files.Discard()
		return nil, err
	}
	return func() error {
		defer files.Discard()
		if c != nil {
			pprof.StopCPUProfile()
		}
		if h != nil {
			runtime.GC() // so that the profile has no garbage
			files.Err = pprof.WriteHeapProfile(h.File)
		}
		return files.Commit()
	}, nil
}
