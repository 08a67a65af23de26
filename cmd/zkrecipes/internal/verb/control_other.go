//go:build !unix

package verb

import (
	"errors"
	"io"
	"io/fs"
)

// ControlSupported reports whether RequestUpgrade works on this system.
const ControlSupported = false

func private(fs.FileInfo) bool { return false }

func lockDirectory(string) (io.Closer, error) { return nil, errors.ErrUnsupported }
