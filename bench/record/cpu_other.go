//go:build !linux && !darwin

package record

import "os"

// cpu names the processor. Windows has the name in the environment.
func cpu() string { return os.Getenv("PROCESSOR_IDENTIFIER") }
