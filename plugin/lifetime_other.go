//go:build !unix

package plugin

import (
	"errors"
	"os"
)

// inherited fails: a process inherits no descriptors here.
func inherited(string) (*os.File, error) {
	return nil, errors.New("this system passes no descriptors on")
}
