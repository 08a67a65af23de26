package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

const (
	askTimeout = 3 * time.Second
	maxAnswer  = 1 << 20
)

// describe asks the servers what they are, with the four-letter word srvr. One
// answer is enough: a server that is down is the clients' business. A server that
// does not want to tell is described by what is known without it.
func describe(ctx context.Context, addrs []string) (record.Server, error) {
	about := record.Server{Servers: len(addrs)}
	var failures []error
	for _, addr := range addrs {
		answer, err := ask(ctx, addr, "srvr")
		if err != nil {
			failures = append(failures, err)
			continue
		}
		about.Version, about.Mode = parseSrvr(answer)
		return about, nil
	}
	return about, fmt.Errorf("no ZooKeeper server answers; is it running, and is the address right?\n%w", errors.Join(failures...))
}

// ask sends a four-letter word to a server and returns its answer.
func ask(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("ask %s: %w", addr, err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if ctx.Err() != nil {
		return "", fmt.Errorf("ask %s: no answer: %w", addr, context.Cause(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", addr, err)
	}
	return string(answer), nil
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
