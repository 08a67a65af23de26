// Package simulation runs the recipes against faults on virtual time, by seeds.
//
// One run is one bubble of testing/synctest. It has an in-process ZooKeeper server with
// followers, a network of pipes, and clients that take turns with a recipe. The seed decides
// the random choices that produce the faults. After some time the faults end, and each client
// must make progress within a bound. At the end of the run no session, ephemeral znode, watch
// or goroutine may be left.
//
//	go test ./internal/testing/simulation -run TestSimulation -seed 42 -v
//
// runs one seed and prints the trace, one line for each event.
//
// # What is simulated
//
//   - Network: a delay for each message, slow connections, slow messages, stalls of one or
//     both directions, half-open connections, resets, full socket buffers. The bytes of one
//     connection keep their order, as with TCP. Connections overtake each other.
//   - Servers: connections that end before a commit, before a reply or after it; slow commits
//     and replies; restarts; a frozen leader; followers that crash before they report a
//     commit, are cut off, or answer reads from an old state; sessions that move to another
//     server or expire; deletions of empty parents; sequence numbers that wrap.
//   - Operators: deletions of contenders' znodes, forced expiries of sessions.
//   - Clients: pauses of their code and network, cancellations, deaths without a close.
//   - Plugins: some recipes run through the plugin's server and the host's client. Their
//     connection stalls or ends.
//   - Deaths of plugins, for sessions that outlive them: the plugin is killed, or it detaches from
//     the session and is replaced, as in an upgrade. Replies may be under way. The next plugin
//     resumes the session, its grants and its places in wait queues. Server and client are those
//     of the product (internal/testing/supervised).
//
// # What is checked
//
//   - At each grant, by the clock: no other client still acts on a grant that this one
//     excludes, the token is the largest, and the znode exists. A session that an operator
//     expires, or of which an operator deletes a znode, is exempt: no clock can foresee that.
//     Its client may act on the grant until the leader's next confirmation, or for the session
//     timeout if no confirmation comes. The tests of the recipes check that a confirmation
//     takes one round trip while the leader answers.
//   - By the server's order: writes under one grant never mix with those under another.
//   - Progress: after the faults, each client finishes two turns in time.
//   - Queues: each element that was put is consumed once or is still in the queue.
//   - Counters and latches: the sum of the changes. No client passes a latch too early.
//   - Barriers: no client passes one that is set. With followers this is not checked, because
//     the client's server may not have the barrier yet.
//   - Groups: each member is listed.
//   - Shares: each number is checked like a lock. After the faults each number has one owner, and
//     the parts of the members differ by one at most, within a bound.
//   - Configurations: each revision of a key is replaced, or deleted, once.
//   - Watches of groups and configurations show the final state in the end.
//   - Double barriers: as many members enter together as the size says, and no member leaves
//     while another is inside.
//   - Two-phase commits: all sites learn the same decision, and none commits if a site has
//     refused or died.
//
// In the scenarios of a dialect every second client contends as Curator or kazoo does: with the
// same names, in the same order, and it waits for the same znodes. How those libraries notice a
// loss is not simulated: such a client acts on a grant for as long as its znode exists. It may
// wait for ever, so its progress is not checked. At a double barrier our members wait for theirs,
// so no progress is checked. Their members may enter too early; ours may not.
//
// TestKnownDefectsAreNoticed runs defects of other libraries through the same harness. Each must be
// found.
//
// # What a seed decides
//
// A seed decides every random choice of the network, servers, faults and clients, and the bytes
// that the library reads from crypto/rand. Each message arrives at an instant of its own. Each
// connection, client, grant and fault has its own stream of choices. The requests of one session
// for one znode have one too. All bytes written to a connection at one instant are one message,
// whatever the number of calls. So each event causes the next, and the order in which goroutines
// run seldom matters. The trace sorts the events of one instant by their text.
//
// The order can still matter when one instant wakes two goroutines. Go chooses at random in a
// select statement, and in an iteration over a map, such as that of a context's children. No seed
// controls that. TestSeedsReplay measures how many seeds produce the same trace twice, byte for
// byte. It was 590 of 600 when this was written, on a busy machine. Most of the other seeds run
// through a plugin, where gRPC has its own goroutines. Each run uses one processor, and garbage is
// collected only between runs. The race detector makes the scheduler choose at random, so
// TestSeedsReplay skips with it.
//
// # What has been run
//
// Seeds 400001 to 500000 (.ci/suite seeds) took 1,281 simulated hours, with 16.1 million turns
// and 5.07 million faults:
//
//   - 779,473 partitions, 389,589 resets, 388,273 half-open connections
//   - 799,629 connections that ended at a request, 531,964 slow commits and replies
//   - 94,122 restarts and 94,547 stalls of all servers
//   - 18,099 followers that crashed, 21,340 that were cut off, 21,141 that lagged
//   - 777,896 pauses and 389,974 deaths of clients, 315,351 expiries
//   - 91,036 ends and 214,080 stalls of a connection to a plugin
//   - 39,650 deletions of znodes, 93,741 reapings, 9,007 wraps of numbers
//
// Two seeds failed, both because of a mistake in the harness. In one, the leader expired the
// operator's session, because the follower of that session was cut off for 32 s. In the other, a
// follower had held back a write, and the in-process server executed it after the session had
// expired.
//
// # What is not simulated
//
// While a client is paused, its code and network stop, but the timers inside the library
// continue. The clocks of all clients run at one rate. There is one leader, and no election.
// Through a plugin that does not die, only lock, several locks, shared lock, shares, queue, counter and
// configuration are simulated. The application notices the end of the connection to its plugin about a
// millisecond before the plugin does.
package simulation
