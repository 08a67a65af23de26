package main

import (
	"fmt"
	"os"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// readRuns reads files of records.
func readRuns(files []string) (runs []record.Run, err error) {
	for _, file := range files {
		more, err := readRun(file)
		if err != nil {
			return nil, err
		}
		runs = append(runs, more...)
	}
	return runs, nil
}

func readRun(file string) ([]record.Run, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	runs, err := record.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return runs, nil
}
