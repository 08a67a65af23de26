// Package simulation runs the recipes against faults on virtual time, by seeds.
//
// One run is one bubble of testing/synctest. In it are an in-process ZooKeeper
// server with followers, a network of pipes, and clients that take turns with a
// recipe. Faults come from streams of random choices that the seed decides. Then
// the faults cease, and each client has to make progress within a bound. In the
// end nothing may be left: no session, ephemeral znode, watch or goroutine.
//
//	go test ./internal/testing/simulation -run TestSimulation -seed 42 -v
//
// runs one seed and prints what happened, one line an event.
//
// # What is simulated
//
//   - Network: a delay for each message, slow connections, slow messages, stalls of
//     one direction or of both, half-open connections, resets, sockets that fill up.
//     Bytes of one connection keep their order, as with TCP. Connections overtake
//     each other.
//   - Servers: a connection that ends before a commit, before a reply or after it;
//     slow commits and replies; restarts; a leader that stands still; followers that
//     crash with what they have not told, are cut off, or answer reads from a state of
//     the past; sessions that move to another server, or are expired.
//   - Operators: contenders' znodes that are deleted, empty parents that are reaped,
//     sequence numbers that wrap.
//   - Clients: pauses of their code and network, cancellations, deaths without a word.
//   - Processes: of lock, election, semaphore, slots, shared lock, priority lock and names, the
//     process that serves a session is killed, with answers on their way, or is replaced
//     as in an upgrade: it lets go of the session. Another one resumes the session. It takes
//     up grants and places in line.
//   - Plugins: some recipes through the plugin's server and the host's client, whose
//     connection stands still or ends.
//
// # What is checked
//
//   - By the clock, at each grant: nobody else still believes in a grant that it
//     excludes, its token is the largest, and its znode exists. A session that an
//     operator expires is left out: no clock foretells it. A grant that is not confirmed
//     may be one that the leader has taken back, for the session's timeout at most.
//     That it is a round trip where the leader answers is tested beside the recipes.
//   - A grant that was resumed is the znode of before.
//   - By the server's order: writes under a grant never mix with those of another.
//   - Progress: when faults have ceased, each client finishes two turns in time.
//   - Queues: what was put was consumed once, or is there. Counters and latches: the
//     sum, and nobody passes a latch too soon, or a barrier that is in place. Groups:
//     whoever is a member is listed. Configurations: each revision of a key that is not deleted is replaced once.
//     Their watches show what is there in the end. Double
//     barriers: as many enter together as their size says, and nobody leaves while one
//     is inside. Two-phase commits: all are told the same, and nobody commits where
//     one has refused or died.
//
// In the scenarios of a dialect every second client is a literal contender of Curator or
// kazoo: its names, its order, and what its library waits for. What those libraries
// believe after a loss is not simulated. Such a client believes in a grant as long as
// its znode exists. At a double barrier theirs may enter too early; ours may not.
//
// TestKnownDefectsAreNoticed runs defects that other libraries have through the same
// harness, and mistakes that a host or its plugin could make when a session moves.
//
// # What a seed decides
//
// A seed decides every random choice of network, servers, faults and clients, and
// what the library draws from crypto/rand. Messages arrive at instants of their own.
// Each connection, client, grant and fault has a stream of choices of its own, and so
// has what a session asks of one znode. What is written to a connection at one instant
// is one message, by however many calls. So one event leads to the next, and the order
// in which goroutines run seldom matters. The trace has the events of one instant in
// the order of their text.
//
// The order can still matter where two goroutines are woken at one instant: Go's select
// statement and its maps, among them that of a context's children, choose at random,
// and no seed reaches them. TestSeedsReplay measures how many seeds give the
// same trace twice, to the byte: 590 of 600 when this was written, on a busy machine.
// Most of the others go through a plugin, where gRPC has goroutines of its own.
// It runs without the race detector, which has the scheduler choose at random, on one
// processor, and collects garbage between runs only.
//
// # What has been run
//
// Seeds 400001 to 500000 (make test-soak) had 1,281 simulated hours, 16.1 million turns
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
// Two seeds failed, and both were the harness. The leader had expired the operator, whose
// follower was cut off for 32 s. And the in-process server executed a write of a session
// that had expired, which a follower had held back.
//
// # What is not simulated
//
// A paused client's code stands still, and its network too, but the timers inside
// the library go on. Clocks of all clients run at one rate. There is one leader.
// Of the recipes through a plugin, only lock, shared lock, queue, counter and
// configuration have a scenario. An application and its plugin lose their connection at the same moment, as on one
// machine.
package simulation
