//go:build !unix

package verb

import (
	"context"
	"os"
)

// closed reports whether f was closed when this process was started.
func closed(f *os.File) bool {
	_, err := f.Stat()
	return err != nil
}

// whileRead cannot notice here that the reader has ended. The next write fails then.
func whileRead(ctx context.Context, _ *os.File) (context.Context, func()) {
	return context.WithCancel(ctx)
}
