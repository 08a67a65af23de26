package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/report"
)

// The lines of a page between which -insert writes.
const (
	insertBegin = "<!-- zkbench report: begin -->"
	insertEnd   = "<!-- zkbench report: end -->"
)

// between returns page with what is between its two marks replaced.
func between(page, text []byte) ([]byte, error) {
	begin, end := bytes.Index(page, []byte(insertBegin)), bytes.Index(page, []byte(insertEnd))
	if begin < 0 || end < begin || bytes.Count(page, []byte(insertBegin)) != 1 || bytes.Count(page, []byte(insertEnd)) != 1 {
		return nil, fmt.Errorf("it has to have the line %s and below it the line %s, once each", insertBegin, insertEnd)
	}
	return bytes.Join([][]byte{page[:begin+len(insertBegin)], []byte("\n"), text, page[end:]}, nil), nil
}

// insert has the summary written into a page, with the figures that are in the
// directory figures, if that is not "".
func (f *files) insert(name, figures string, sets []report.Set) {
	if name == "" || f.err != nil {
		return
	}
	page, err := os.ReadFile(name)
	if err != nil {
		f.err = usageError{fmt.Errorf("-insert: %w", err)}
		return
	}
	picture := func(set int, figure report.Figure) string {
		if figures == "" {
			return ""
		}
		path, err := filepath.Rel(filepath.Dir(name), figureFile(figures, set, figure))
		if err != nil {
			return "" // on another drive: no link leads there
		}
		return filepath.ToSlash(path)
	}
	var b bytes.Buffer
	if err := report.Summary(&b, sets, picture); err != nil {
		f.err = err
		return
	}
	whole, err := between(page, b.Bytes())
	if err != nil {
		f.err = usageError{errors.Join(fmt.Errorf("-insert %s", name), err)}
		return
	}
	f.add("-insert", name, func(w io.Writer) error {
		_, err := w.Write(whole)
		return err
	})
}

// figureFile is the path of a figure of the set of that index.
func figureFile(dir string, set int, f report.Figure) string {
	return filepath.Join(dir, fmt.Sprintf("%d-%s.svg", set+1, f.Name))
}
