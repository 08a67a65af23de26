package main

import (
	"fmt"
	"os"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/traffic"
)

// describeServers describes the servers. For the embedded one it names the flags for real servers.
func describeServers(s record.Server) string {
	if s.Mode == "embedded" {
		return report.Servers(s) + "; to measure a real one, see -ensemble and -servers"
	}
	return report.Servers(s)
}

func readRuns(files ...string) (runs []record.Run, err error) {
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		more, err := record.Read(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		runs = append(runs, more...)
	}
	return runs, nil
}

// readAudit reads a file of -from-audit or of replay. An error comes from exit.Usage.
func readAudit(file, below string) (*traffic.Log, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, exit.Usage(err)
	}
	defer f.Close()
	l, err := traffic.Read(f, below)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("%s: %w", file, err))
	}
	return l, nil
}
