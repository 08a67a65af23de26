package host

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
)

// socketTail is the length of the longest path that go-plugin adds to a temporary directory:
// "/plugin-dir" and "/plugin", each with a random number of 32 bits.
const socketTail = len("/plugin-dir4294967295/plugin4294967295")

// maxSocketPath is the greatest length of a Unix socket's path. With the final zero, Linux
// allows 108 bytes and other systems 104.
const maxSocketPath = 103

// socketBase returns a directory in which go-plugin can create a private directory for the
// socket without exceeding maxSocketPath.
func socketBase() (string, error) {
	if runtime.GOOS == "windows" {
		return os.TempDir(), nil // plugins listen on TCP
	}
	bases := []string{os.TempDir(), os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", os.Getuid()), "/tmp", "/dev/shm"}
	for _, dir := range bases {
		if dir != "" && len(dir)+socketTail <= maxSocketPath && writable(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no directory for the plugin's socket: $TMPDIR, $XDG_RUNTIME_DIR, /run/user/%d, /tmp and /dev/shm are too long, or missing, or this user cannot write there; set TMPDIR to a writable directory of at most %d bytes",
		os.Getuid(), maxSocketPath-socketTail)
}

// writable reports whether this process can make a directory in dir. The mode of dir is not
// enough: its file system may be mounted read-only, like the root of a container.
func writable(dir string) bool {
	made, err := os.MkdirTemp(dir, "zkrecipes-")
	return err == nil && os.Remove(made) == nil
}

// socketDirName and socketName are the names that go-plugin gives a socket's directory and a
// socket.
var (
	socketDirName = regexp.MustCompile(`^plugin-dir[0-9]+$`)
	socketName    = regexp.MustCompile(`^plugin[0-9]+$`)
)

// removeAbandoned removes the directories in base that a host and its plugin of this user left
// when both were killed. It ignores errors: the plugin starts without it.
func removeAbandoned(base string) {
	entries, _ := os.ReadDir(base)
	for _, e := range entries {
		if e.IsDir() && socketDirName.MatchString(e.Name()) {
			removeIfAbandoned(filepath.Join(base, e.Name()))
		}
	}
}

// mutualTLS returns the host's TLS configuration for the plugin of this launch, and the
// variable that gives the plugin the host's certificate. No other process can make that
// connection. go-plugin's AutoMTLS does the same with keys that are twenty times as slow.
// go-plugin reads the plugin's certificate from the handshake and adds it to RootCAs.
func mutualTLS() (cfg *tls.Config, env string, err error) {
	cert, pem, err := handshake.NewCertificate()
	if err != nil {
		return nil, "", err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		RootCAs:      x509.NewCertPool(), // only the plugin's
		MinVersion:   tls.VersionTLS13,
		ServerName:   handshake.CertificateName,
	}, handshake.CertificateEnv + "=" + string(pem), nil
}
