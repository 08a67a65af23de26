//go:build !linux && !darwin

package record

import "os"

// cpu returns the name of the processor, which Windows has in the environment, or "".
func cpu() string { return os.Getenv("PROCESSOR_IDENTIFIER") }
