package main

import (
	"errors"
	"io"
	"os"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// sink is where an experiment's records go: -out, or stdout without it, in the benchmark
// format, and -record as JSON lines.
type sink struct {
	out, record *output
	text        *record.Writer
	lines       *record.JSONWriter // nil without -record
}

// openSink opens the files, so that what cannot be written is known before
// anything is measured. An error is a usageError.
func openSink(out, records string) (*sink, error) {
	o, err := createOutput("-out", out)
	if err != nil {
		return nil, usageError{err}
	}
	r, err := createOutput("-record", records)
	if err != nil {
		o.discard()
		return nil, usageError{err}
	}
	return &sink{out: o, record: r}, nil
}

// continueSink is openSink for records that go on in the file of former ones, which
// it returns. They are in it as soon as they are written.
func continueSink(out, records string) (*sink, []record.Run, error) {
	o, err := createOutput("-out", out)
	if err != nil {
		return nil, nil, usageError{err}
	}
	r, runs, err := continueOutput("-record", records)
	if err != nil {
		o.discard()
		return nil, nil, usageError{err}
	}
	return &sink{out: o, record: r}, runs, nil
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
