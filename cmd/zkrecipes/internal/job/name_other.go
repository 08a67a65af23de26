//go:build !unix

package job

import "os"

// name is what people call a signal. Here there is only the interrupt.
func name(s os.Signal) string { return "the signal " + s.String() }
