// Package zookeeper implements the contract of package recipes on ZooKeeper, in this process.
// [Open] opens a session and returns a client, which returns recipes by path.
//
// The recipes are internal packages, one for each kind. The comment of each package names its
// source text, and says where it diverges from the text and why:
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
// They import the following packages, and not each other:
//
//   - session is one ZooKeeper session. It has the parts that every correct recipe needs: the
//     rule for grants, creations and transactions that survive a lost reply, watches, and
//     waiting for events.
//   - line is the wait queue: order, strategies, and grants.
//   - znode has the parts that several recipes need to work with znodes.
//
// Below session are conn and lease. conn has the connections and requests, and is the only package
// that calls go-zookeeper. lease has the local deadline and the proof for a grant.
//
// The tests of a recipe are in the folder of its package, and open whole sessions through
// package zookeeper. The tests of this package run over all recipes: faults at every request,
// resumed sessions, third-party contenders, and costs.
package zookeeper
