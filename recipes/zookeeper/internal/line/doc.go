// Package line implements the wait queue of a path: the order of its contenders, the strategies
// of waiting, and the decision to grant. Locks, shared locks, semaphores and elections use it.
// A contender joins by creating an ephemeral sequential znode, its place, and leaves by
// deleting it. A [Rule], a small pure function, says which contenders ahead block a contender.
//
// # The rule for a grant
//
// A contender is granted when three things are established, in this order:
//
//  1. No contender ahead blocks it. With n permits, fewer than n contenders ahead block it.
//  2. After that, its own znode exists and belongs to this session.
//  3. The leader is proved to keep the session for another quarter of its timeout
//     ([session.Session.BeginHold]).
//
// Without a handoff, a listing of the path shows the first and a read of the znode shows the
// second. Both remain true. The sequence numbers of one parent only grow, so no later contender
// gets ahead, and the number of blockers can only shrink. As long as the znode exists, no later contender that it blocks can be granted. Because the
// znode is ephemeral, it exists until another client deletes it, which ends the hold and is
// reported, or the leader expires the session. The session declares itself lost before the
// leader can do that (package lease). With a handoff, one event shows the first and the second:
// see "Handoff".
//
// A waiter concludes nothing from an event, except from a handoff. It wakes when a znode that
// it watches is changed or deleted, and whenever the connection ends. Then it lists again. So
// an event that is late, repeated, or missed during a reconnect does no harm.
//
// # Why no wake-up is missed
//
// A waiter watches as many of its blockers as there are permits, one for a lock. It can be
// granted only when fewer blockers remain, so at least one of the watched znodes must be
// deleted first. If a blocker is deleted between the listing and the read that sets its watch,
// that read does not find it. If the nearest blocker may let the waiter go first (Line.Passes),
// the waiter also watches and reads that one.
//
// # Handoff
//
// With the strategy [recipes.Handoff], a holder's release wakes its successor, which is granted
// without another request. A contender's znode is then a [session.BareZnode]. Its name is only
// the marker and the number, so the successor computes the name without a listing. Only its own
// session may write to it. A holder releases by one transaction that sets the data and deletes
// the znode. The server fires watches operation by operation, so the successor's one-shot watch
// reports the change of data, and is used up. A waiter never writes to its own znode, and gives
// up by deleting it.
//
// From the change of data alone, the successor concludes that its predecessor T held and has
// released. It may, for these reasons:
//
//   - T is the nearest contender ahead: the znode with the number before the successor's, or,
//     if that does not exist, the nearest one in a listing. A smaller number that is missing
//     stays missing, because numbers grow. The read that set the watch on T shows a bare znode
//     (by its data) that was never written (by its version).
//   - Only T's session has written to T. T's ACL allows only one digest user to write, which is
//     the same for all sessions that may change the wait queue (see "The ACL of a wait queue").
//     A session of this library writes to a bare znode only to release it: its own place, while
//     it holds, and not an older place of the same name (see "Names that are used again"). So
//     no contender was ahead of T, none is between T and the successor, and T is deleted.
//   - The successor's znode existed when T released. The successor watches its own znode too,
//     in the same exchange and before T. A server reports changes to a session in order. So if
//     another client had deleted the successor's znode before T's release, that deletion would
//     have been reported first. Without this watch, two contenders could accept the same
//     release: the waiter, and the next one, which has noticed that the waiter's znode is
//     deleted.
//
// In all other cases the waiter lists again, as without a handoff:
//
//   - T does not exist, or was deleted without a change. It died, gave up, or another client
//     deleted it.
//   - T is not such a bare znode. It belongs to another library or another strategy.
//   - The successor's own znode is deleted.
//   - The connection has ended. Events may have been missed. If the watch were set again, the
//     server's answer would not distinguish a release from another change. So the waiter reads
//     T again instead.
//
// All servers of an ensemble apply changes in one order, so it does not matter which of them
// reports an event. If the successor's session expires before T's release, its znode is
// deleted.
//
// A contender uses a protected znode instead if the numbers are exhausted (Entry.Exhausted), if
// the session has no identity, or if the server refuses the identity.
//
// # The ACL of a wait queue
//
// The ACL prevents accidents: without it, any client that sets a contender's data would release
// the lock by mistake. (Assumption: no client does that as the server's superuser or on a
// server that skips ACLs.) It does not protect against malice, because a client that may delete
// contenders can break the lock anyway. So the identity needs no secret per session. It is
// published, or derived from credentials if those decide which clients may delete
// (session.identity).
//
// There is a second reason for one ACL for all contenders. A server numbers the ACLs of its
// znodes, and forgets an ACL when the last znode with it is deleted. An ACL that is created
// while the server writes a snapshot can be missing from the snapshot, and some servers cannot
// start from that (ZOOKEEPER-4846). So the path of the wait queue gets the same ACL when this
// library creates it. The ACL is then in use before the first contender joins and after the
// last one leaves.
//
// Every other protection that was considered costs a further request. The successor decides by
// one event, which contains neither data nor the session that caused it. Another kind of event
// needs another znode, and creating that below the path would use a number.
//
// Earlier versions gave each session an identity of its own. Contenders of both versions may
// wait in one queue. Each is protected against writes of the other, and accepts its release.
//
// # Names that are used again
//
// If the parent is deleted and created again, as an empty container is, the names of bare
// znodes are used again. So a bare znode is identified by its czxid. A listing is valid only if
// the parent was created before the znode. A deletion reads the znode first. A session releases
// by handoff only its latest znode of a name. A guarded write checks a second znode, whose
// existence proves that the parent is the same (see bareGuard.check).
//
// A release cannot compare the czxid, and the server accepts it from every session of the
// identity. If it hit the znode of another contender that waits, the successor of that
// contender would be granted beside the holder. So a session sends it only while a watch on its
// connection shows that the name still belongs to its own znode. That is the watch for the
// deletion of the znode, which each waiter sets, or the watch on the parent, which the first
// read of the parent sets. If neither is set, or it has fired, the session reads the znode
// first.
//
// One gap remains while a release is in flight: between the last event that the server has reported
// and the moment at which the leader handles the release. The release does harm only if all of the
// following happens in that time. Another client deletes the holder's znode, all other contenders
// and the path, and so has already broken the lock. Then at least three contenders join the new
// queue: a new holder, a waiter whose number is that of the released znode, and the successor of
// that waiter. The gap lasts at most the session timeout, because the leader then expires the
// session. While network and servers work, it lasts a round trip. A second znode for each
// contender, in a directory of the wait queue, would close the gap, because a release could check
// that znode. It would cost a second creation and deletion for each grant.
//
// If a deletion in flight hits another contender's bare znode, that contender handles it as a
// deletion by another client, and is notified.
//
// A model of all this is explored exhaustively for three contenders and up to two faults
// (handoff_model_test.go). It calls the same functions to decide (handoff.go), and finds a
// mistake planted in any of the guards above.
//
// A release is a transaction, so it cannot happen in part. If its reply is lost, the znode
// shows whether it has happened.
//
// # A server that lags
//
// A follower that was cut off reports changes late. It may report a release that was meant for
// a session which has expired since. By then another client holds, with a larger token. So an
// event is not enough for a grant: BeginHold must also succeed. This applies to each contender,
// whether or not it has waited, and to each way to be granted: by a release, a listing, a claim
// or a resume. In a busy wait queue, the session's own requests are the proof, and nothing is
// sent between the event and the grant.
//
// # Third-party contenders
//
// A third-party contender is one with which this wait queue shares no order: it belongs to
// another library, or to another recipe of this one. The table is peers. A contender that lists
// the path checks for them (see Line.Foreign), and fails with ErrForeign if it finds one. The
// listing comes after the creation of its own znode, so it finds each third-party contender
// that joined earlier. That also works by handoff. All children of a path share its numbers, so the
// first contender behind a third-party contender does not find a predecessor with the number before
// its own. It lists, and leaves without a release. The next contender does the same.
//
// A third-party contender that joins later does not check for ours, and only a compatibility
// mode can keep it out. With the strategies predecessor and herd, a waiter lists the path before it
// is granted, and finds it there. With a handoff nothing is listed, so the holder finds it. While a
// grant is held, a watch on the path's children shows that something has changed. With the
// session's next confirmation, at most a tenth of the timeout later, the watch is set again and
// then the path's record is read (session.Inspect). The path is listed if children were created
// since the last listing without a third-party contender (see Line.Inspected). If the listing shows
// a contender of another library, the hold ends with ErrForeign. Its release deletes the znode
// without a handoff, so the successor lists. A contender that came and left between two checks is
// not found.
//
// So an undisturbed hold costs one read and one watch in its whole life, and a busy wait queue
// costs a holder no more than one read, one listing and one event for each confirmation. Rejected:
// a persistent recursive watch, which reports the path of each creation. It would send two events
// for each turn of a busy wait queue, servers before 3.6 do not have it and close the connection,
// and before 3.9 it interferes with plain watches of the same path (ZOOKEEPER-4466).
//
// A contender of another recipe of this library does not end a hold. It lists after it has joined,
// finds the holder, and leaves; the listing of a holder may show it in between. Its name, or its
// data, shows that it is ours (see Line.otherLibrarys).
//
// The leases of Curator's semaphore are below the path and use none of its numbers. A contender
// that lists the path finds the directory.
//
// In a compatibility mode, a semaphore's contenders wait at another path than the semaphore's.
// They list the semaphore's path before they create anything, and again after they have joined
// the wait queue for the lock. kazoo's leases are children of the path itself, so there each
// count of them is also a check. With Curator's names, a third-party contender that joins
// during the wait is not found.
//
// In a compatibility mode, the znode has the library's marker, and the contender waits without
// a handoff, as that library does.
//
// # Divergence from ZooKeeper's recipe
//
// ZooKeeper's recipe for locks waits with exists(). This package waits with getData(): if the
// znode was just deleted, exists() leaves a watch at the server for a creation that never comes.
package line
