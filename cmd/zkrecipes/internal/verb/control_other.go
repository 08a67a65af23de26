//go:build !unix

package verb

import "io/fs"

// ControlSupported reports whether RequestUpgrade works on this system.
const ControlSupported = false

func private(fs.FileInfo) bool { return false }
