package server

// Unsent replaces MaxUnsent.
func (c Config) Unsent(n int) Config {
	c.unsent = n
	return c
}
