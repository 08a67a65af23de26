package host

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/plugin"
)

// ErrVersion: the plugin speaks no version of the protocol that this host
// speaks. Install a plugin, or a host, of a version that matches.
var ErrVersion = errors.New("plugin of another protocol version")

func speaks(version int) bool {
	_, ok := plugin.VersionedPlugins()[version]
	return ok
}

// hello is the beginning of a plugin's stdout, its part of the handshake.
// go-plugin reports a version that does not match only in words.
type hello struct {
	mu   sync.Mutex
	line []byte
}

// mostHello bounds it: a certificate makes most of the line.
const mostHello = 16 << 10

func (h *hello) add(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line = append(h.line, b[:min(len(b), mostHello-len(h.line))]...)
}

// version returns the protocol version of the handshake, if there was one:
// "1|<version>|<network>|<address>|grpc|...".
func (h *hello) version() (int, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := bytes.Cut(h.line, []byte("\n"))
	fields := strings.Split(string(line), "|")
	if len(fields) < 5 || fields[0] != "1" {
		return 0, false
	}
	v, err := strconv.Atoi(fields[1])
	return v, err == nil
}

// overheard notes what is read. Its end is that of the process: a pipe that the
// process's children would hold open is closed then, which go-plugin would log
// as an error.
type overheard struct {
	io.ReadCloser
	hello *hello
}

func (o overheard) Read(b []byte) (int, error) {
	n, err := o.ReadCloser.Read(b)
	o.hello.add(b[:n])
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}
