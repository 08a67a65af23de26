// Package recipestest is the contract of package recipes as tests. Whoever
// implements [recipes.Session], or carries it over a wire, runs
//
//	recipestest.Run(t, recipestest.Env{Open: opener, Servers: servers})
//
// and every sentence of the contract that can be tested is, with the session
// reached through the opener and nothing else.
//
// What goes wrong is made to go wrong on the way: each test reaches the servers
// through a proxy of its own, which can cut a connection, keep it cut, hold what
// passes in either direction, and expire a session by closing it from a second
// connection. The same faults therefore hit every implementation, in this process
// or another, and every server, embedded or real. Znodes are looked at from
// outside over a plain ZooKeeper connection past that proxy.
//
// No test sleeps: what has to happen first is waited for, by a watch, Done,
// Events, Joined or Observe, and every wait is bounded.
package recipestest
