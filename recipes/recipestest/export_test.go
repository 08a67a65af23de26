package recipestest

import "testing"

// RunGroup runs the tests of one group.
func RunGroup(t *testing.T, name string, env Env) {
	for _, g := range groups() {
		for _, test := range g.tests {
			if g.name == name {
				t.Run(test.name, func(t *testing.T) { test.run(newFixture(t, env)) })
			}
		}
	}
}

// Insist returns the environment whose tests run even if the servers lack what they test.
func (e Env) Insist() Env {
	e.insist = true
	return e
}
