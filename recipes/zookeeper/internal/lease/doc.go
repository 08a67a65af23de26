// Package lease computes for how long a session can rely on its own life, and whether that is
// enough for a grant. It sends nothing. Package conn reports each contact, a request or a ping
// that was answered, and package session reads the result.
//
// go-zookeeper learns of an expiry only from a server. A [Lease] counts from the time when the last
// contact was sent. When the negotiated timeout has passed, the session is lost. While the session
// holds something, the lease counts from the last contact that the leader is proved to have
// received. Nothing is granted without that proof.
//
// The time for which the machine was suspended counts, although the monotonic clock does not run
// then (see expiry.Clock). A contact that was sent before is older by that time.
//
// # What the leader has received
//
// Only the leader decides when a session expires. A client that is connected to a follower
// sends its contacts to the follower, which records them. The follower reports them when the
// leader asks, in its ping every half tick. If the follower dies in between, or is cut off and
// keeps answering its clients (it may, for syncLimit ticks), the leader counts from the previous
// report.
//
// So a session that holds something counts from contacts that the leader is proved to have
// received. Follower and leader have one connection, and each end handles messages in order.
// (Read in ZooKeeper 3.8.0: LearnerHandler.run applies the sessions in the answer to a ping
// before it reads on. Learner.ping answers in the thread that reads. A sync, and a write, goes
// through PrepRequestProcessor to ProposalRequestProcessor, whose answer is queued behind the
// pings that were queued before.) Here such a request is called a leading request. Let c be a
// contact that was answered at u, and let all of this be on one connection:
//
//  1. A leading request R1 is sent at least a delay after u, and answered without an error. The
//     delay is longer than half a tick. So the leader has sent a ping between u and its handling
//     of R1. The follower reads that ping after u, when it has recorded c, and before it reads
//     the answer to R1. So its report, which includes c, is on its way to the leader when R1 is
//     answered.
//  2. A leading request R2 is sent after the answer to R1, and answered without an error. The
//     follower sent its report before it forwarded R2, so the leader has handled it. The leader
//     counts from c or later. It cannot expire the session before the time when c was sent plus
//     the timeout.
//
// One leading answer (step 1) proves only that the report was sent. That would be enough if
// pings were never delayed on their way to the follower. It is not enough if the follower is
// paused, and dies when it runs again. One answer does prove something else: the session had not
// expired when the leader handled the request. It proves nothing about the time after that.
//
// The age of a contact is measured at the sending of a leading request that was answered later
// ([Evidence.Asking]). The present age proves nothing. A contact grows old even if the leader never
// asks for it, for example because the follower is cut off just after it. [Evidence] belongs to one
// connection. It proves nothing on the next one, whose handshake is later than all earlier
// contacts. But what it has proved ([Lease.KnownContact]) is a fact about the leader, and remains
// valid when the session moves to another server. A new leader counts each session from its own
// start, which is later.
//
// The delay is 28 % of the timeout: half of the shortest tick, plus an eighth for a late ping.
// The leader also has each handshake: it creates the session, or revalidates it, before the
// follower accepts it.
//
// # The rule for grants
//
// No recipe grants anything unless the leader is proved to keep the session for another quarter
// of its timeout ([Lease.Begin]). A grant needs only this proof:
//
//   - The contender's znode was created in this session. It existed when the contender found no
//     other contender ahead of it, by the event of a release or by a listing.
//   - The leader has not expired the session, so it has not deleted the znode with the session.
//   - Another client may have deleted the znode. A server reports changes in order. So a
//     deletion before the release is reported before the release. A later deletion is the
//     deletion of a hold, and is reported as such.
//
// If the proof is recent enough, nothing is sent between the event and the grant. A request there
// would queue behind the previous holder's next write, and wait for its disk.
//
// If the proof is too old, the session sends syncs, one after the other:
//
//   - A session that has recently written or held something sends none. Its own requests are
//     contacts and proofs.
//   - A session that was idle and has just created its znode sends one. The creation is R1 for
//     the last ping but one, and the sync is R2.
//   - A session that has sent only pings, as after a long wait, sends two.
//
// A waiter whose proof is older than half the timeout sends one sync in the background
// ([Lease.Old]), so that a grant after a short wait costs nothing.
//
// # While something is held
//
// A leading request is sent every tenth of the timeout. The session's own writes count once
// they are answered without an error: a server that is cut off answers none. If a server has not
// answered a sync after three tenths of the timeout, it may be cut off, and the session moves to
// another one. The sessions of a host send them at common instants, an eighth of that time apart,
// and never later than due. While they are sent and answered, go-zookeeper's pings are dropped,
// because each sync is a contact, as a ping is.
//
// That costs at most 10 requests per session timeout (one a second at 10 s), however much is held. A
// path at which a grant of a wait queue is held adds to that only when its children change, and after
// a reconnect (session.Inspect). The reads are sent after the sync, at most a tenth of the paths or
// 1,000 at a time, and not before the last ones were answered: a late answer to a sync looks like a
// server that is cut off. The leader
// answers syncs without a transaction and without its disk. The contact from which the deadline
// counts is then 0.4 to 0.5 of the timeout old, where an answered ping is up to 0.33. In an
// outage Done closes after 0.45 to 0.55 of the timeout. A hold that is younger than half the
// timeout may have an older proof: its Done can close after 0.2 of the timeout.
//
// # Why ten
//
// An old hold survives an outage of 0.4 of the timeout (docs/guarantees.md). Done closes 0.95 of the
// timeout after the proved contact was sent (package expiry). So the contact may never be older than
// 0.5 of the timeout. The other 0.05 are for the reconnect: the dialer of package conn bounds its
// pauses and attempts by what remains. They suffice for round trips of 0.01 of the timeout.
//
// Each proof takes two leading requests. R2 of one proof may be R1 of the next. Let t(n) be when the
// n-th leading request is sent, and let answers take no time. Just before request n+1 is answered:
//
//  1. R2 of the last proof is request n, or an earlier one.
//  2. R1 of that proof was answered before R2 was sent. So it is request n-1, or an earlier one.
//  3. The contact was answered at least the delay before R1 was sent: at t(n-1) - 0.28 or earlier.
//  4. So the contact is at least t(n+1) - t(n-1) + 0.28 old. To be at most 0.5, two intervals may
//     take 0.22 together. Nine requests per timeout are not enough: there, two take 2/9 on average.
//
// Ten at equal intervals are enough. When R1 is sent, the contact is 0.3 old. When R2 is answered, it
// is 0.4 old, and before the next answer 0.5. A late answer adds its delay. A round trip above 0.02
// of the timeout adds another tenth, because the contact is then too young for R1.
// TestTheAgeOfTheProofUnderASchedule computes these ages and those of rejected schedules:
//
//   - Pairs, one request right after the other, every quarter of the timeout: eight requests. The
//     contact of the previous pair is 0.25 old, too young for R1. So R1 asks for the pair before,
//     and the age grows to 0.75.
//   - Pairs as far apart as the delay: seven requests. The age grows to 0.56, so an outage of 0.39 can
//     be too long. Nothing is left for the reconnect.
//   - More pings between fewer syncs. Step 4 holds for any contacts.
//   - Longer intervals for an older hold. Its age proves nothing about the leader, and the promise is the
//     same for all holds that are not young.
//   - One session asks for all sessions of a process that are connected to the same server. A follower
//     reports all of its sessions together, so that would be a proof. But the protocol does not
//     identify a server. Two connections to one address may be of two servers, as behind a load
//     balancer.
//
// So the requests are made cheap instead: without reads, without pings, and at instants that the
// sessions of a host have in common (BenchmarkHolds in package interop).
//
// # The timeout
//
// The transaction that creates a session has the timeout that the first server granted, and a
// new leader counts with that. A server with a larger minSessionTimeout, to which the session
// moves, grants more. The present leader then counts with the larger timeout, and its successor
// does not. A server with a smaller maxSessionTimeout grants less, and the leader counts with
// that. So a session's timeout is the smallest that any server has granted to it.
//
// # Local sessions
//
// With localSessionsEnabled, the leader has no record of a session until the session creates
// its first ephemeral znode. Its server then upgrades the session. The leader counts from that
// time, which is later than all contacts of the local session, and nothing is held earlier. The
// leader also answers syncs of sessions of which it has no record, because they may be local. But
// if it has expired the session, the follower commits that before the answer, and closes the
// connection. (Read in 3.8.0: LeaderSessionTracker.checkSession, FinalRequestProcessor.)
//
// # Assumptions
//
// The leader pings its followers and observers every half tick, as long as they answer, and
// grants no timeout below two ticks. (minSessionTimeout can be set lower.)
//
// An observer that follows a follower (observerMasterPort) reports to the follower, which
// reports to the leader half a tick later. That needs a timeout of four ticks. It also needs an
// observer that reads its pings in time: the second answer proves that the follower has received
// the report, but not that the leader has. If the observer is more than the delay less one tick
// late, and its follower dies within half a tick after that, the leader may count from an
// earlier contact. (`zkrecipes doctor` compares the timeout with the ticks of servers that
// answer conf. A session cannot: the protocol reports neither the tick nor the role.)
//
// A leader that was replaced, and has not noticed, answers syncs until it finds that too few
// servers follow it. Its successor counts each session from its own start. So Done closes in time
// if the old leader answers for at most a third of the timeout after the new one has started. If
// both lose contact at the same time, that is one and a half ticks, less the election. A
// transaction instead of a sync would prove that a quorum still follows the leader. It would cost
// each holder ten writes per timeout, on every disk of the ensemble.
//
// The guarded write is safe even if these assumptions do not hold.
//
// # ClickHouse Keeper
//
// A session recognizes ClickHouse Keeper (package conn). Nothing was tested there. "Published: yes"
// means that the sources of 2026 or a maintainer say so, and "no" that they say the opposite:
//
//  1. Only the leader expires a session. Published: yes. (Each server also ends a connection that has
//     sent nothing for the timeout. Here that is the end of the session too.)
//  2. The leader counts from a time that is not before the sending of the contact. Published: yes, for
//     requests that go through its log. It counts from when it applied them.
//  3. The leader's clock runs as ours. Published: unknown. If it is a wall clock, setting it
//     forward expires sessions early.
//  4. A follower reports its clients' contacts to the leader. Published: no. Reads on a follower extend
//     no session (issue 111102, and pull request 121361, which was open in September 2026). The
//     argument does not need that there: R1 and R2 extend the session by themselves, and are
//     later than c. The beat of a hold therefore consists of syncs and writes, never of reads alone.
//  5. Syncs and writes go through the leader. Published: yes, through the log of the quorum. Pings do
//     so too, except in the first versions.
//  6. The requests of a connection are carried out in order. Published: yes by default, and unknown with the
//     setting async_replication.
//  7. The leader has handled a request that was answered. Published: unknown. The quorum has the
//     request in its log, and the session's server has applied it. A leader that applies its log late
//     counts from an older request.
//  8. A new leader counts each session from its own start. Published: no. It counts from when it applied
//     the session's last request itself: see 7.
//  9. The leader has each handshake. Published: yes: opening a session goes through the log.
//  10. A handshake continues its session. Published: no. So the session ends with its connection
//     (recipes.ErrNotContinued), and the handshake of another session is no contact.
//  11. The timeout is in the transaction that creates the session. Published: yes.
//  12. A leader that was replaced answers no sync for long. Published: yes: without a majority it answers none.
//  13. Expiry deletes all ephemeral znodes of the session in one transaction. Published: yes.
//  14. Nothing of an expired session is carried out. Published: no. A write that is behind the expiry in
//     the log happens. A guarded write does not, because its check fails.
//
// Where the answer is unknown, another client may be granted before Done closes. Tokens and guarded
// writes depend on 13 only, and on transactions that are atomic and in one order, which is published.
//
// A sync is written to the log there. So each session with a hold costs ten log entries per timeout. A
// session whose sync is not answered stays at its server, because moving would end it.
package lease
