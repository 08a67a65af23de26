//go:build !unix

package verb

import (
	"context"
	"os"
)

// closed reports whether f was closed when this process started.
func closed(f *os.File) bool {
	_, err := f.Stat()
	return err != nil
}

// whileRead does not notice on this system that the reader has exited. The next write fails.
func whileRead(ctx context.Context, _ *os.File) (context.Context, func()) {
	return context.WithCancel(ctx)
}
