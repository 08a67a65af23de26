package recipestest

import "testing"

// The proxy, for tests of this package that are not part of the contract.

type Proxy struct{ *proxy }

func NewProxy(servers []string) (Proxy, error) {
	p, err := newProxy(servers)
	return Proxy{p}, err
}

func (p Proxy) Addr() string               { return p.addr }
func (p Proxy) Freeze(session int64)       { p.freeze(session) }
func (p Proxy) Restore(session int64)      { p.restore(session) }
func (p Proxy) Expire(session int64) error { return p.expire(session) }
func (p Proxy) Close()                     { p.close() }

// RunGroup runs the contract of one recipe.
func RunGroup(t *testing.T, name string, env Env) {
	for _, g := range groups() {
		for _, test := range g.tests {
			if g.name == name {
				t.Run(test.name, func(t *testing.T) { test.run(newFixture(t, env)) })
			}
		}
	}
}
