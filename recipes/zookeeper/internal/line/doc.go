// Package line is what locks, shared locks, semaphores and elections have in
// common. Contenders stand in line below a path, in the order of the sequence
// numbers that ZooKeeper gave their znodes. Each waits for those ahead that block
// it.
//
// It owns enrolment, order, the strategies of waiting, the decision that a
// contender is granted, and giving the place up again. A [Rule], which is a small pure
// function, says which contenders a contender waits for.
//
// # Why it is safe
//
// A contender is granted after two reads and a proof. A listing of the line, which has
// its own znode, shows no contender ahead that blocks it. A read of its znode after that
// listing finds it there, and owned by this session. Sequence numbers of one
// parent only grow, so a contender that was not ahead at the listing never will be.
// The znode is ephemeral. As long as it exists no other contender can be granted, and the
// leader is proved to keep it until the session is over. The session declares itself lost
// before that.
//
// A waiter wakes when the znode it watches goes, and whenever the connection is
// lost; then it starts again from the listing. It never concludes anything from
// the event itself, so an event that is late, doubled, or was missed during a
// reconnect does no harm.
//
// With permits, fewer than n blockers stand ahead of whoever is granted, by the
// same argument: a listing that showed fewer can only be followed by fewer.
//
// # Why no wake-up is missed
//
// A waiter watches as many of its blockers as there are permits, one for a lock.
// It may be granted when fewer than that are left, so one of those watched must
// have gone before. One that goes between the listing and the look that arms its
// watch is found missing by that look. Where the nearest of them may let it go
// first (Line.Passes), it watches and reads that one, too.
//
// # Handoff, and why it is safe
//
// With the strategy handoff ([recipes.Handoff]) a contender's znode is a
// [session.BareZnode]. Its name is marker and number alone, so that its successor
// knows the name without a listing. Only its own session may write to it. A
// holder releases by one transaction that sets its data and deletes it. The
// server fires watches operation by operation, so the successor's one-shot watch
// tells of the change of data, and is used up. A waiter never writes to its own
// znode, and gives up by deleting it. From the change of data alone the
// successor concludes that it is next. Why it may:
//
//   - The contender that it watched, T, is the nearest one ahead: that with the number
//     before its own, or, when that is not there, the nearest in a listing. What
//     is missing below its own number stays missing, for numbers grow. A look at
//     T, made with the watch, shows a bare znode (by its data) that has never been
//     written (by its version).
//   - Only T's session has written to it. T's ACL leaves writing to one digest user,
//     which is the same for all sessions that may change the line (see "The ACL of a
//     line"). And a session of this library writes to a bare znode only to release it: its
//     own place, when it held (and not in place of an older one of the same name: see
//     "Names that come back"). So no contender was ahead of T, none is between T and
//     the successor, and T is gone.
//   - The successor's znode was there when T released. It watches that too, in the
//     same exchange and before T. A server tells a session of changes in their
//     order, so a deletion by another client before T's release would have been
//     told before. Otherwise the next in line, which saw the deletion, and the
//     waiter would both take T's release for theirs.
//
// In all other cases the waiter looks again, by the plain recipe:
//
//   - T is not there, or was deleted without a change: it died, gave up, or another
//     client deleted it.
//   - T is not a bare znode of this kind, but another library's or another strategy's.
//   - The successor's znode is gone.
//   - The connection was lost. Events may have been missed. The server's answer to a
//     watch that is set again does not tell a release from another change, so that
//     is never asked, and T is read anew.
//
// The events of other servers of an ensemble come in the same order, for a server
// applies all changes in one order. If the successor's session expires between the
// two, its znode is deleted.
//
// Where numbers have come to an end (Entry.Exhausted), and where the session has no
// identity or the server does not take it, a contender stands in line by the protected
// creation instead.
//
// # The ACL of a line
//
// The ACL is against accidents: without it any client that sets a contender's data would
// release the lock by mistake. (Assumed: nobody uses the server's superuser, or a server
// that skips ACLs, for that.) It is not against malice. A client that may delete
// contenders can break the lock anyway. So the identity needs no secret of one session.
// It is published, or derived from credentials where those decide who may delete
// (session.identity).
//
// One list for all contenders has a second reason. A server numbers the lists of its
// znodes, and forgets a list with the last znode that has it. A list that is created while
// a snapshot is written can be missing in the snapshot, and some servers cannot start from
// that (ZOOKEEPER-4846). So the path of the line gets the same list when this library
// creates it. The list is in use before the first contender comes, and after the last has
// left.
//
// No construction without an ACL was found that costs no request. The successor goes by
// one event, which has no data and no author. Another kind of event needs another znode,
// and its creation below the path would take a number.
//
// Versions before gave each session an identity of its own. Both stand in one line. Each
// refuses the writes of the other, and believes its release.
//
// # Names that come back
//
// Bare znodes' names are given again when the parent is removed and made again, as an
// empty container is. So a bare znode is known by its czxid. A listing counts only
// with a parent that is older than the znode. Deletions look first. A session
// releases by handoff only its latest one of that name. A guarded write checks a
// second znode whose existence shows that the parent is the same (see
// bareGuard.check).
//
// Nothing in a release can be checked against the czxid, and the server allows it to every
// session. If it met the znode of another contender, one that waits, then the successor of
// that one would be granted beside the holder. So a session sends it only while a watch
// of its connection shows that the name is still its own: that for the deletion of the
// znode, which each waiter sets, or that on the parent, set with the first look at it.
// Where neither is set, or it has fired, the session looks at the znode first.
//
// What is left is a release on its way: from the last that the server has told, until the
// leader handles it. In that time another client would have to delete the holder's znode,
// all others and the path, and contenders would have to join the new line up to the
// holder's number, two more after the first. That client has broken the lock by then. The
// time is at most the session timeout, for later the leader has expired the session; where
// the network and the servers work it is a round trip. A znode for each contender, below a
// directory of the line, would close the gap by a check. It would cost a second creation
// and deletion in each turn.
//
// A deletion on its way that meets another's bare znode is for that one a deletion by another
// client, of which it is told.
//
// A model of all this is explored exhaustively for three contenders and up to two
// faults (handoff_model_test.go; the same functions decide in it, handoff_step.go).
// It finds a mistake that is planted in any of the guards above.
//
// A release that fails half-way does not exist: it is a transaction. Whether one
// whose reply was lost has happened is seen from the znode.
//
// # A server that lags
//
// A follower that was cut off reports late what has happened, and may report a release that
// was meant for a session which has expired since. Another client holds by then, with a
// larger token. So a grant needs more than the event: the leader must be proved to keep the
// session, and with it the contender's znode ([session.Session.BeginHold]). This holds for
// each contender, whether it has waited or not, and for each way to be granted: by a
// release, by a listing, by a claim, by resuming. In a busy line the session's own requests
// are the proof, and nothing is sent between the event and the grant.
//
// # Third-party contenders
//
// A third-party contender is one with which this line shares no wait queue: of another
// library, or of another recipe of this one. The table is peers. A contender that lists the
// line looks for them (see Line.foreign), and fails with ErrForeign if it finds one. Listings come after its znode was created, so
// it finds each contender that came before it. By handoff, too: numbers are the parent's,
// so the first of ours behind a third-party contender finds its number missing, lists, and
// leaves without a release. So does the next.
//
// A third-party contender that joins later does not look for ours, and nothing that ours
// could do keeps it out. Only a compatibility mode does. By predecessor and herd a waiter
// finds it in the listing with which it is next. Where a handoff passes the turn on, nothing
// is listed. Then the holder finds it: while a hold lasts, the path's record is read a tenth
// of the timeout apart, and the line is listed if children were created since the last
// listing without a third-party contender (see Line.Inspected). If two listings in a row
// find the same one, the hold ends with ErrForeign. Its release deletes the znode without a handoff, so the next one lists.
//
// The leases of Curator's semaphore are below the path, and take no numbers of it. A
// contender finds them by the directory, where it lists.
//
// Semaphores in the dialects of other libraries wait at another path than theirs. They list
// theirs before they make anything there, and once more when they wait for the lock. kazoo's
// leases are children of the path itself, so there each count of them is a check, too.
// For Curator's, one that joins while a contender waits is not found.
//
// In a dialect the znode has the library's marker, and the contender waits by the
// plain recipe, which is that of the library.
//
// # Divergence from the source text
//
// The text waits with exists(). Here it is getData(): exists() on a node that
// has just gone leaves a watch at the server for a creation that will never
// come.
package line
