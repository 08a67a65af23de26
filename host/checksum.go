package host

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrChecksum is returned by Launch when the plugin's executable does not have the
// checksum in Config.Checksum, or when that is not a SHA-256. The plugin was not started.
var ErrChecksum = errors.New("checksum of the plugin does not match")

// verify checks a file's checksum. go-plugin's own check accepts a checksum of any length,
// and its hash cannot be used for a second attempt.
func verify(path, checksum string) error {
	want, err := hex.DecodeString(checksum)
	if err != nil || len(want) != sha256.Size {
		return fmt.Errorf("%w: %q is not a SHA-256 of %d hexadecimal digits", ErrChecksum, checksum, 2*sha256.Size)
	}
	got, err := Checksum(path)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(got[:], want) != 1 {
		return fmt.Errorf("%w: %s has %x, expected %x", ErrChecksum, path, got, want)
	}
	return nil
}

// Checksum returns the SHA-256 of a file. Config.Checksum is its hexadecimal form.
func Checksum(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, fmt.Errorf("checksum of the plugin: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, fmt.Errorf("checksum of the plugin: %w", err)
	}
	h.Sum(sum[:0])
	return sum, nil
}
