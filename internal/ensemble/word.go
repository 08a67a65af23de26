package ensemble

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// ErrNotServing is returned if a server answers that it serves no requests: it is still
// starting, or has no quorum. It may serve later.
var ErrNotServing = errors.New("server is up but not serving requests")

// Mode is the role of a server that serves.
type Mode string

// The modes that ZooKeeper reports.
const (
	Standalone Mode = "standalone"
	Leader     Mode = "leader"
	Follower   Mode = "follower"
	Observer   Mode = "observer"
)

const (
	wordTimeout = 10 * time.Second // if ctx has no deadline: a frozen server accepts and never answers
	maxAnswer   = 64 << 20
)

func (h Host) exchange(ctx context.Context, addr, word string) (string, error) {
	conn, err := h.dial(ctx, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	return readAnswer(io.LimitReader(conn, maxAnswer))
}

// dial connects from within the host's network. So it reaches the server even if the
// network between the hosts is broken.
func (h Host) dial(ctx context.Context, addr string) (conn net.Conn, err error) {
	err = h.Do(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", addr)
		return err
	})
	return conn, err
}

// readAnswer reads until the server closes the connection, or until it says that it does
// not serve. After that line, a ZooKeeper 3.8 that is still starting does not close the
// connection: without a database, ZooKeeperServer.removeCnxn throws a
// NullPointerException. The connection would stay open for ever.
func readAnswer(r io.Reader) (string, error) {
	var answer strings.Builder
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		answer.WriteString(line)
		switch {
		case strings.Contains(line, "not currently serving requests"):
			return "", ErrNotServing
		case errors.Is(err, io.EOF):
			return answer.String(), nil
		case err != nil:
			return "", err
		}
	}
}

// parseMode finds the mode in an answer to srvr.
func parseMode(answer string) (Mode, error) {
	for line := range strings.Lines(answer) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return Mode(strings.TrimSpace(mode)), nil
		}
	}
	return "", fmt.Errorf("no mode in the answer %.200q", answer)
}

// parseMntr reads an answer to mntr. Each line is a name, a tab and a value.
func parseMntr(answer string) map[string]string {
	figures := make(map[string]string)
	for line := range strings.Lines(answer) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t"); ok {
			figures[name] = value
		}
	}
	return figures
}
