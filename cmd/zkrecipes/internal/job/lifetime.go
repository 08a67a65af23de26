package job

import "os"

// Lifetime is a pipe that commands and the processes that they start inherit. Its Reader
// reports the end of file when this process and all of these have exited or closed their
// copies. A nil Lifetime has no pipe.
type Lifetime struct {
	Reader *os.File
	writer *os.File
}

// NewLifetime returns a Lifetime for commands that start later, or nil on systems where a
// process inherits no descriptors.
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
