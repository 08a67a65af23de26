// Package zookeeper implements the contract of package recipes on ZooKeeper, in this
// process. [Open] opens a session, and the session hands out recipes by path.
//
// The recipes are internal packages, one for each family. The comment of each package
// names its source text, and says where it diverges from the text and why:
//
//   - lock: the lock and the semaphore
//   - rwlock: the shared lock and the priority lock, which can be revoked
//   - election: the leader election
//   - queue: the queue and the priority queue
//   - barrier: the barrier and the double barrier
//   - group: group membership and the directory of names
//   - config: the configuration, the counter and the latch
//   - twophase: the two-phase commit
//
// They know three packages and not each other:
//
//   - session is one ZooKeeper session, and the only package that calls go-zookeeper. It
//     owns what every recipe needs to be correct: the local deadline, creations and
//     transactions after a lost reply, watches, and waiting for events.
//   - line is where contenders wait for each other: order, strategies, and grants.
//   - znode is what several families need to work with znodes.
//
// The tests of this package use whole sessions: faults at every request, histories of
// many sessions, wake-ups, and costs.
package zookeeper
