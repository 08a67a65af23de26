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
	if o == nil {
		return nil
	}
	if o.final == "" {
		return o.Close()
	}
	err := errors.Join(o.Sync(), o.Close())
	if err == nil {
		err = os.Rename(o.Name(), o.final)
	}
	if err != nil {
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

// sink is where an experiment's records go: -out, or stdout without it, in the benchmark
// format, and -record as JSON lines.
type sink struct {
	out, record *output
	text        *record.Writer
	lines       *record.JSONWriter // nil without -record
}

// openSink opens the files, so that what cannot be written is known before anything is
// measured. With -resume it returns what the file of -record has, and new records are in
// it as soon as they are written. An error is a usageError.
func (s settings) openSink() (_ *sink, former []record.Run, err error) {
	var o sink
	if o.out, err = createOutput("-out", s.out); err != nil {
		return nil, nil, usageError{err}
	}
	if s.resume {
		o.record, former, err = continueOutput("-record", s.record)
	} else {
		o.record, err = createOutput("-record", s.record)
	}
	if err != nil {
		o.out.discard()
		return nil, nil, usageError{err}
	}
	return &o, former, nil
}

// describe says where the records come from. It is called before write.
func (s *sink) describe(stdout io.Writer, env record.Environment) {
	s.text = record.NewWriter(stdout, env)
	if s.out != nil {
		s.text = record.NewWriter(s.out, env)
	}
	if s.record != nil {
		s.lines = record.NewJSONWriter(s.record, env)
	}
}

func (s *sink) write(r record.Record) error {
	if s.lines != nil {
		if err := s.lines.Write(r); err != nil {
			return err
		}
	}
	return s.text.Write(r)
}

// unwritten is the failure to keep in -out or -record what was measured. An interrupt
// does not hide it: whoever interrupts a run is told that the results are there.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// commit puts the files into their places. An error is unwritten.
func (s *sink) commit() error {
	if err := errors.Join(s.out.commit(), s.record.commit()); err != nil {
		return unwritten{err}
	}
	return nil
}

// rescue writes to stdout what is in -out and cannot be kept there.
func (s *sink) rescue(stdout io.Writer) error {
	if s.out == nil || s.out.final == "" {
		return nil
	}
	text, err := os.ReadFile(s.out.Name())
	if err == nil {
		_, err = stdout.Write(text)
	}
	return err
}

// discard leaves nothing behind of files that were not committed.
func (s *sink) discard() {
	s.out.discard()
	s.record.discard()
}

// keep writes records to the files alone and puts those into their places. An error is
// unwritten.
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

// startProfiles starts the CPU profile and returns what ends it and writes the
// heap profile. Empty names are no profiles. An error is a usageError.
func startProfiles(cpu, heap string) (stop func() error, err error) {
	c, err := createOutput("-cpuprofile", cpu)
	if err != nil {
		return nil, usageError{err}
	}
	h, err := createOutput("-memprofile", heap)
	if err != nil {
		c.discard()
		return nil, usageError{err}
	}
	if c != nil {
		if err := pprof.StartCPUProfile(c); err != nil {
			c.discard()
			h.discard()
			return nil, err
		}
	}
	return func() error {
		if c != nil {
			pprof.StopCPUProfile()
		}
		err := c.commit()
		if h == nil {
			return err
		}
		defer h.discard()
		runtime.GC() // or what has just become garbage would be in it
		if heap := pprof.WriteHeapProfile(h.File); heap != nil {
			return errors.Join(err, heap)
		}
		return errors.Join(err, h.commit())
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
