//go:build !unix

package ensemble

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// BindToParent does nothing: only Linux has a parent-death signal.
func BindToParent(*exec.Cmd) {}

func (p *process) freeze() error { return errNoSignals() }

func (p *process) thaw() error { return errNoSignals() }

func errNoSignals() error {
	return fmt.Errorf("%s cannot stop and continue a process: %w", runtime.GOOS, errors.ErrUnsupported)
}
