//go:build !unix

package verb

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
)

// ControlSupported reports whether RequestUpgrade works on this system.
const ControlSupported = false

func private(fs.FileInfo) bool { return false }

func lockDirectory(string) (io.Closer, error) { return nil, errors.ErrUnsupported }

// closed reports whether f was closed when this process started.
func closed(f *os.File) bool {
	_, err := f.Stat()
	return err != nil
}

// whileRead does not notice on this system that the reader has exited. The next write fails.
func whileRead(ctx context.Context, _ *os.File) (context.Context, func()) {
	return context.WithCancel(ctx)
}

// keepOwner does nothing: on this system a file belongs to who creates it.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
