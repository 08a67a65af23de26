package job

import "os"

// Lifetime is a pipe that commands inherit, and with them all that they start. It ends
// when this process and all of these have ended, or have closed what they inherited. nil
// is none.
type Lifetime struct {
	Reader *os.File
	writer *os.File
}

// NewLifetime returns a Lifetime for commands yet to be started, or nil where a process
// inherits no descriptors.
func NewLifetime() (*Lifetime, error) {
	if !inherits {
		return nil, nil
	}
	r, w, err := os.Pipe()
	return &Lifetime{r, w}, err
}

// Close closes this process's ends.
func (l *Lifetime) Close() {
	if l != nil {
		_, _ = l.Reader.Close(), l.writer.Close()
	}
}
