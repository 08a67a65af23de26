//go:build !unix

package plugin

import (
	"errors"
	"os"
)

// inherited fails: processes inherit no descriptors on this system.
func inherited(string) (*os.File, error) {
	return nil, errors.New("processes inherit no descriptors on this system")
}
