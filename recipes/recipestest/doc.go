// Package recipestest is the contract of package recipes as a test suite. Authors of
// another implementation of [recipes.Client], or of another way to reach one, run
// it against theirs:
//
//  1. Start an Apache ZooKeeper for tests. In zoo.cfg set tickTime=200 and
//     maxSessionTimeout=60000, so that it grants session timeouts from 400 ms to a
//     minute. Start it with -Dznode.container.checkIntervalMs=250, so that it soon
//     removes empty containers.
//  2. Write a test that calls [Run] with the implementation's opener and the server's
//     address, as the example shows.
//  3. Run it: go test -run TestContract . A test's name is a sentence of the contract
//     that does not hold, such as
//     TestContract/contract/lock/lock/handoff/giving_back_wakes_the_next.
//  4. Run that one alone with -run and its name, and with -race.
//
// Every sentence of the contract that can be tested is tested. The suite reaches the
// session through the opener and through nothing else.
//
// # Faults
//
// Each session reaches the servers through a relay of its own. The relay can cut a
// connection, keep it cut, and hold what passes in either direction. A test expires a
// session by closing it from a second connection. So the same faults hit every
// implementation, in this process or another, and every server. The tests look at
// znodes from outside, over a plain ZooKeeper connection that does not use a relay.
//
// So an implementation must speak ZooKeeper's protocol, without TLS, to the address
// that it is given. It must not find other servers by itself.
//
// # Time
//
// No test sleeps. A test waits for what has to happen first, by a watch, Done, Events,
// Joined or Observe, and every wait has a bound. Tests of one recipe run in
// parallel; -parallel says how many. Most of them wait most of the time.
package recipestest
