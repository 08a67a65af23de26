package host

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
)

// ErrVersion is returned by Launch when the plugin and this host have no protocol version
// in common. Install a plugin or a host of a matching version.
var ErrVersion = errors.New("plugin of another protocol version")

// supported reports whether this host supports a protocol version.
func supported(version int) bool {
	_, ok := handshake.Host()[version]
	return ok
}

// hello is the first line of a plugin's stdout, its part of the handshake. go-plugin reports a
// version mismatch only as text.
type hello struct {
	mu   sync.Mutex
	line []byte
}

// mostHello bounds the line, in bytes. Most of it is a certificate.
const mostHello = 16 << 10

func (h *hello) add(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line = append(h.line, b[:min(len(b), mostHello-len(h.line))]...)
}

// version returns the protocol version of the handshake, if there was a handshake:
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

// recorded copies what go-plugin reads of stdout to hello. The host closes the pipe when
// the process has exited, because the process's children may keep it open. go-plugin would
// log that as an error, so Read returns io.EOF instead.
type recorded struct {
	io.ReadCloser
	hello *hello
}

func (o recorded) Read(b []byte) (int, error) {
	n, err := o.ReadCloser.Read(b)
	o.hello.add(b[:n])
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}
