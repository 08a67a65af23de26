package host

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrUnsafe is returned by Find and Launch when another user could have put the plugin
// where it is, or could change it. Either everybody may write to the executable or to a
// directory above it, or it is below the working directory and belongs to another user.
// The plugin was not started.
var ErrUnsafe = errors.New("plugin is not safe to start")

// executable reports whether path is an executable file, or a link to one.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && mayExecute(info)
}

// checkPermissions returns ErrUnsafe if everybody may replace the executable, or a link on
// the way to it.
func checkPermissions(path string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("host: plugin %s: %w", path, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("host: plugin: %w", err)
	}
	if worldWritable(info) {
		return unsafe(target, info)
	}
	if err := checkLinks(path); err != nil {
		return err
	}
	return checkDirectories(filepath.Dir(target), false)
}

// checkDirectories checks the directory of an executable or a link, and all directories
// above it. Everybody must not be able to write to the first one, not even with the sticky
// bit, as in /tmp: any user could have created the file there. Above it the sticky bit is
// enough, because it keeps others from renaming the directory below. If sticky is true, the
// bit is enough for the first directory too.
func checkDirectories(dir string, sticky bool) error {
	return checkEach(dir, sticky, func(info os.FileInfo, sticky bool) bool { return worldWritable(info) && !sticky })
}

// checkEach returns ErrUnsafe if bad reports true for dir or a directory above it.
func checkEach(dir string, sticky bool, bad func(info os.FileInfo, sticky bool) bool) error {
	for ; ; sticky = true {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("host: plugin: %w", err)
		}
		if bad(info, sticky && info.Mode()&os.ModeSticky != 0) {
			return unsafe(dir, info)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
}

func unsafe(path string, info os.FileInfo) error {
	return fmt.Errorf("host: %w: everybody may write to %s (%v); chmod o-w it, or install the plugin elsewhere", ErrUnsafe, path, info.Mode())
}

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
