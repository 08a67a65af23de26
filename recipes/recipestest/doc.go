// Package recipestest is the contract of package recipes as a test suite. Authors of
// another implementation of [recipes.Client], or of another way to reach one, run
// it against theirs:
//
//  1. Start an Apache ZooKeeper for tests. In zoo.cfg set tickTime=200 and
//     maxSessionTimeout=60000, so that it grants session timeouts from 400 ms to a
//     minute. Start it with -Dznode.container.checkIntervalMs=250, so that it soon
//     deletes empty containers.
//  2. Write a test that calls [Run] with the implementation's opener and the server's
//     address, as the example shows.
//  3. Run it: go test -run TestContract . The name of a failed test ends with the promise
//     that the implementation breaks, such as
//     TestContract/contract/lock/lock/handoff/grants_follow_the_order_of_joining.
//  4. Run that test alone with -run and its name, and with -race.
//
// "zkbench verify" runs the same tests against a plugin executable, which can be written in any
// language. It uses [Parts], because a program is not a test.
//
// Every sentence of the contract that can be tested is tested. The suite calls the
// implementation only through the opener and the sessions that it returns.
//
// # Faults
//
// Each session connects to the servers through its own relay. The relay can cut the
// connection, keep it cut, and hold requests or replies. A test expires a session by
// closing it over a second connection. So the suite can cause the same faults in every
// implementation, in this process or another, and with every server. The tests read and
// change znodes over a plain ZooKeeper connection that does not use a relay.
//
// So an implementation must speak ZooKeeper's protocol, without TLS, to the address in the
// configuration. It must not discover other servers.
//
// # Time
//
// A test does not sleep to wait for an event. It waits for the event itself, by a watch,
// Done, Events, Joined or Observe, or reads Stats until they show a request. Every wait has
// a bound. The tests run in parallel; -parallel says how many. They spend most of their
// time waiting.
package recipestest
