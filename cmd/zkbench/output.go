package main

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
)

// output is the file of a flag such as -out. It is written beside its final path and moved there
// when it is complete. So no reader finds half a file, and a run that fails before its first
// result leaves an existing file unchanged.
type output struct {
	*os.File
	flag  string // the flag that names it
	final string // "" if it is written in place: it is not a regular file, or is continued
}

// outputs are files that are complete together.
type outputs struct {
	all []*output
	err error // the first; a usageError if a file could not be opened
}

// create opens a file, so that an unwritable path is reported before the first trial. If name is
// "", or after an error, the output is nil.
func (o *outputs) create(flag, name string) *output {
	if name == "" || o.err != nil {
		return nil
	}
	out, err := createOutput(flag, name)
	if err != nil {
		o.err = usageError{err}
		return nil
	}
	o.all = append(o.all, out)
	return out
}

// commit moves the files to their final paths.
func (o *outputs) commit() error {
	err := o.err
	for _, out := range o.all {
		if o.err == nil {
			err = errors.Join(err, out.commit())
		}
	}
	return err
}

// discard removes the files that were not committed.
func (o *outputs) discard() error {
	for _, out := range o.all {
		out.Close() // the content is dropped, so an error does not matter
		if out.final != "" {
			os.Remove(out.Name())
		}
	}
	return nil
}

func createOutput(flag, name string) (*output, error) {
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

// recordsBegin is how each file of records begins. continueOutput must not truncate any other
// file.
var recordsBegin = []byte(`{"zkbench":`)

// continueOutput opens a file of records to append to it, and returns its runs. It removes a last
// line that a crash has cut short.
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
	if err = f.Truncate(int64(len(text))); err == nil {
		_, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s cannot be continued: %w", flag, err)
	}
	return &output{File: f, flag: flag}, runs, nil
}

func (o *output) commit() error {
	if o.final == "" {
		return o.Close()
	}
	err := errors.Join(o.Sync(), o.Close())
	if err == nil {
		err = os.Rename(o.Name(), o.final)
	}
	if err != nil {
		o.final = "" // discard must not remove the only copy
		return fmt.Errorf("write %s: %w; it is in %s", o.flag, err, o.Name())
	}
	return nil
}

// Write removes what it has written if it fails, for example on a full disk. Half a record would
// make the file unreadable.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if end, seekErr := o.Seek(0, io.SeekCurrent); err != nil && seekErr == nil {
		_ = o.Truncate(end - int64(n)) // err is reported in any case
	}
	return n, err
}

// sink writes the records of an experiment: to -out, or to stdout without it, in the benchmark
// format, and to -record as JSON lines.
type sink struct {
	outputs
	out, record *output
	text        *record.Writer
	lines       *record.JSONWriter // nil without -record
	wrote       bool               // a record is in -record, in -out or on stdout
}

// openSink opens the files. With -resume it returns the runs in the file of -record, and appends
// each new record at once. An error is a usageError.
func (s settings) openSink() (_ *sink, former []record.Run, err error) {
	var o sink
	o.out = o.create("-out", s.out)
	if !s.resume {
		o.record = o.create("-record", s.record)
	} else if o.record, former, err = continueOutput("-record", s.record); err == nil {
		o.all = append(o.all, o.record)
	} else if o.err == nil {
		o.err = usageError{err}
	}
	if o.err != nil {
		o.discard()
	}
	return &o, former, o.err
}

// describe sets the environment of the records. It must be called before write.
func (s *sink) describe(stdout io.Writer, env record.Environment) {
	s.text = &record.Writer{Output: stdout, Environment: env}
	if s.out != nil {
		s.text = &record.Writer{Output: s.out, Environment: env}
	}
	if s.record != nil {
		s.lines = &record.JSONWriter{Output: s.record, Environment: env}
	}
}

func (s *sink) write(r record.Record) error {
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

// unwritten is the error if results could not be saved in -out or -record. It is reported even
// after an interrupt, whose exit code promises that the results are saved.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// commit moves the files to their final paths. An error is unwritten.
func (s *sink) commit() error {
	if err := s.outputs.commit(); err != nil {
		return unwritten{err}
	}
	return nil
}

// keep writes records to the files, but not to stdout, and commits them. An error is unwritten.
func (s *sink) keep(records []record.Record, env record.Environment) error {
	if len(records) == 0 {
		return nil
	}
	s.describe(io.Discard, env)
	for _, r := range records {
		if err := s.write(r); err != nil {
			return unwritten{err}
		}
	}
	return s.commit()
}

type named struct{ flag, file string }

// distinct returns an error if two flags name the same file, because the results of one would be
// lost, or mixed with those of the other. Two flags may name the same device.
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

// startProfiles starts the CPU profile. stop ends it and writes the heap profile. If a name is
// "", there is no such profile. An error is a usageError.
func startProfiles(cpu, heap string) (stop func() error, err error) {
	var files outputs
	c, h := files.create("-cpuprofile", cpu), files.create("-memprofile", heap)
	if err = files.err; err == nil && c != nil {
		err = pprof.StartCPUProfile(c)
	}
	if err != nil {
		files.discard()
		return nil, err
	}
	return func() error {
		defer files.discard()
		if c != nil {
			pprof.StopCPUProfile()
		}
		if h != nil {
			runtime.GC() // so that the profile has no garbage
			files.err = pprof.WriteHeapProfile(h.File)
		}
		return files.commit()
	}, nil
}

type cleanup struct{ ends []func() error }

func (c *cleanup) add(end func() error) { c.ends = append(c.ends, end) }

func (c *cleanup) run(err *error) {
	for i := len(c.ends) - 1; i >= 0; i-- {
		*err = errors.Join(*err, c.ends[i]())
	}
	c.ends = nil
}
