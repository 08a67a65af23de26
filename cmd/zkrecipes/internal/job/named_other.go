//go:build !unix

package job

import "errors"

// ExecFlag is the first argument by which this program replaces itself. It cannot on this system.
const ExecFlag = "-exec"

func renamed(program string, argv []string) (string, []string) { return program, argv }

// Exec returns an error: this system cannot replace a process.
func Exec([]string) error { return errors.ErrUnsupported }
