// Package secret reads passwords, keys and certificates from files and environment variables.
// No error quotes a secret.
//
// An empty secret or certificate is an error: it was truncated, or is not mounted yet. It would
// count as missing. Without a CA the system's CAs are trusted, and without a key the client is
// not authenticated.
package secret

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// File reads a certificate or a key.
func File(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err == nil && blank(content) {
		err = fmt.Errorf("expected something in the file %s, which is empty", path)
	}
	return content, err
}

// PrivateFile is File for a password, whose file must be private.
func PrivateFile(path string) ([]byte, error) {
	if err := Private(path); err != nil {
		return nil, err
	}
	return File(path)
}

// Password returns a password without one newline at its end, which is not part of it.
func Password(content []byte) string {
	return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
}

// Variable reads a secret from an environment variable.
func Variable(name string) ([]byte, error) {
	value, ok := os.LookupEnv(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("expected the secret in the environment variable %s, which is not set", name)
	case blank([]byte(value)):
		return nil, fmt.Errorf("expected the secret in the environment variable %s, which is empty", name)
	}
	return []byte(value), nil
}

// Private returns an error if everybody may read a file. A file that does not exist is private.
func Private(path string) error {
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0 {
		return fmt.Errorf("everybody may read %s (%v); chmod o-r it", path, info.Mode())
	}
	return nil
}

func blank(content []byte) bool { return len(bytes.TrimSpace(content)) == 0 }
