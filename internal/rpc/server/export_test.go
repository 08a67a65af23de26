package server

// Unsent keeps so many bytes for a host that does not read, instead of MaxUnsent.
func (c Config) Unsent(n int) Config {
	c.unsent = n
	return c
}
