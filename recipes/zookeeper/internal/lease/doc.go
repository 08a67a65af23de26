// Package lease has what a session knows of its own life: for how long it may be relied on, and
// whether that is enough for a grant. It sends nothing. Package conn tells it of each contact,
// which is a request or a ping that was answered, and package session asks it.
//
// go-zookeeper learns of an expiry only from a server. A [Lease] counts on its own from the
// sending of the last contact, and the session is lost when the negotiated timeout has passed.
// While the session holds something it counts from the last contact that the leader is proved to
// have. Nothing is granted without that proof.
//
// # What the leader knows
//
// The leader alone decides when a session expires. A client that is connected to a
// follower is heard by the follower. The follower notes which sessions it has heard.
// It reports them when the leader asks, every half tick, in its ping to the follower. If
// the follower dies in between, or is cut off and goes on answering its clients (it may
// for syncLimit ticks), the leader counts from the report before.
//
// So a session that holds something counts from contacts that the leader is proved to
// have. Follower and leader have one connection, and each end handles what arrives in
// order. (Read in ZooKeeper 3.8.0: LearnerHandler.run applies the sessions in a ping's
// answer before it reads on; Learner.ping answers in the thread that reads; a sync, and
// a write, goes through PrepRequestProcessor to ProposalRequestProcessor, whose answer is
// queued behind the pings that were queued before.) Such a request is a leading one here.
// Let c be a contact that was answered at u, and let all of this be on one connection:
//
//  1. A leading request R1 is sent at least a delay after u, and answered without an
//     error. The delay is longer than half a tick. So the leader has sent a ping between
//     u and its handling of R1. The follower reads that ping after u, when it has heard
//     c, and before it reads the answer to R1. So its report, with c in it, is on its way
//     to the leader when R1 is answered.
//  2. A leading request R2 is sent after the answer to R1, and answered without an error.
//     The follower's report went to the leader before R2 did. So the leader has handled
//     it: it counts from c, or later, and cannot expire the session before c's sending
//     plus the timeout.
//
// One leading answer (step 1) proves only that the report was sent. That would be enough if
// pings were never late on their way to the follower. A follower that was paused, and
// dies when it runs again, shows the difference. It does prove something else: the session
// had not expired when the leader handled the request. That says nothing of the time after.
//
// A contact is old enough only against the sending of a leading request that was answered
// later ([Evidence.Asking]). It is not aged against the present: a contact grows old though the
// leader never asks for it, as when the follower is cut off just after it. [Evidence] belongs
// to one connection. It would prove nothing on the next one, whose handshake is a
// later contact than all before it. What it has proved ([Lease.KnownContact]) is a fact about the
// leader, and stays when the session moves to another server. A new leader counts each session from
// its own start, which is later.
//
// The delay is 28 % of the timeout: half of the shortest tick, plus an eighth for a leader
// that asks late. A handshake is a contact that the leader has: the leader creates the
// session, or revalidates it, before the follower accepts it.
//
// # The rule for grants
//
// Nothing is granted, in any recipe, unless the leader is proved to keep the session for
// another quarter of its timeout ([Lease.Begin]). This one proof is all that a grant
// needs:
//
//   - The contender's znode was created in this session, and was there when the contender
//     found no other ahead of it: by the event of a release, or by a listing.
//   - The leader has not expired the session, so it has not deleted the znode with it.
//   - Another client may have deleted the znode. A server reports changes in order. So a
//     deletion before the release arrived before the release's event. A later one is that
//     of a hold, and is reported as one.
//
// Nothing is sent between the event and the grant while the proof is young enough. A request
// there would queue behind the previous holder's next write, and wait for its disk.
//
// Where the proof is too old, the session sends syncs, one after the other. What they cost:
//
//   - A session that has written or held something of late: nothing. Its own requests are
//     contacts and proofs.
//   - A session that was idle and has just created its znode: one sync. The creation is R1
//     for the last ping but one, and the sync R2.
//   - A session that has sent nothing but pings, as after a long wait: two.
//
// A waiter whose proof is older than half the timeout sends one sync that no goroutine
// waits for ([Lease.Old]), so that a grant after a short wait costs nothing.
//
// # While something is held
//
// A leading request is sent every tenth of the timeout; the session's own writes count.
// A server that does not answer a sync for a quarter of the timeout is left for another
// one, because it may be cut off.
//
// That costs at most 10 requests in a session timeout (one a second at 10 s), and as many
// reads for each path at which a line's turn is held (session.Inspect). The leader
// answers syncs without a transaction and without its disk. The contact from which the
// deadline counts is then 0.4 to 0.5 of the timeout old, where an answered ping is up to
// 0.33. In an outage Done closes after 0.45 to 0.55 of the timeout. A hold that is younger
// than half the timeout may have an older proof: its Done can close after 0.2.
//
// # Assumptions
//
// The leader asks its followers every half tick, as long as it answers them, and
// grants no timeout below two ticks. (minSessionTimeout can be set lower, and an
// observer that follows a follower, observerMasterPort, passes contacts on in two
// steps. Both need a timeout of four ticks.)
//
// All servers have the same minSessionTimeout, or the session asks for no less than the
// largest. A server that raises a timeout tells the client. But the transaction that
// creates the session has the timeout that was asked for. A new leader takes it from there
// and raises it to its own minimum, which may be smaller than what the client counts with.
// (`zkrecipes doctor` compares them.)
//
// A leader that was deposed, and does not know it, answers syncs until it finds
// that too few follow it. Its successor counts each session from its own start. So
// Done closes in time if the old leader answers for no more than a third of the
// timeout after the new one has started. Where both lose sight of each other at the
// same time, that is one tick and a half, less the election. A transaction instead
// of a sync would prove that a quorum still follows the leader. It would cost a
// write to every disk of the ensemble, ten times in a timeout, for each holder.
//
// The guarded write is safe even where these assumptions do not hold.
package lease
