package output

import (
	"io"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
)

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
