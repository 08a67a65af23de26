package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// describe asks the servers what they are, with the four-letter word srvr. One
// answer is enough: a server that is down is the clients' business. A server that
// does not want to tell is described by what is known without it.
func (w words) describe(ctx context.Context) (record.Server, error) {
	about := record.Server{Servers: len(w.addrs)}
	var failures []error
	for _, addr := range w.addrs {
		answer, err := w.ask(ctx, addr, "srvr")
		if err != nil {
			failures = append(failures, err)
			continue
		}
		about.Version, about.Mode = parseSrvr(answer)
		return about, nil
	}
	return about, fmt.Errorf("no ZooKeeper server answers; is it running, and is the address right?\n%w", errors.Join(failures...))
}

// commit is what a release has behind its number: the hash that it was built
// from, or the build's failure to fill that in.
var commit = regexp.MustCompile(`-([0-9a-f]{40}|\$\{.*\})$`)

// parseSrvr returns the version and the mode in an answer to srvr, each "" if it
// is not there.
func parseSrvr(answer string) (version, mode string) {
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Zookeeper version":
			value, _, _ = strings.Cut(value, ",")
			version = commit.ReplaceAllString(value, "")
		case "Mode":
			// Which server was asked must not decide what the results are
			// compared with.
			if mode = "ensemble"; value == "standalone" {
				mode = value
			}
		}
	}
	return version, mode
}
