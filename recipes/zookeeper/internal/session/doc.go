// Package session is the only part of zkrecipes that talks to go-zookeeper/zk.
// It owns, once, what every recipe needs for being correct:
//
//   - One zk.Conn is one ZooKeeper session. go-zookeeper would open another
//     session by itself when the first has expired, and would then send requests
//     that were queued for the first. Here the dialer refuses once the session
//     is over, so no request can ever run in a session that it was not meant
//     for.
//   - A local deadline. go-zookeeper learns of an expiry only from a server. The
//     session counts on its own from the sending of the last request or ping
//     that was answered, and is lost when the negotiated timeout has passed. While
//     it holds something it counts from the last one that the leader knows of.
//   - Creation that survives a lost reply (protected create), and deletion that
//     goes on until it is known.
//   - Watches shared by all waiters of a session, because a watch cannot be taken
//     back.
//
// Waiting code follows one pattern: take the channel that Connected returns,
// look, and wait for the watch, the channel, the session's loss or the context;
// then start over. So it wakes on its event and on every loss of the
// connection, looks again when the connection is back, and needs no timers.
//
// # What go-zookeeper/zk 1.0.4 needs to be protected from
//
// go-zookeeper makes the handshake, sends pings and credentials, and connects again.
// All other requests, and watch events, go past it, on the bytes below it (conn.go). It
// would set aside buffers for the largest packet, twice for each session, and never give
// them back. What a session takes here follows what it sends and receives.
//
//   - The handshake is bounded. The library's own limit is ten times the receive
//     timeout, and the body has none.
//   - Contacts with the server are noted, and everything is counted.
//   - lastZxid is kept here. The library reads and writes it from different
//     goroutines without synchronisation.
//   - It would keep watches of its own, and arm them again after a reconnect. What has
//     changed since would be told when the waiters may have looked already.
//   - A reply is awaited as long as it arrives, however large it is.
//
// # What the leader knows
//
// The leader alone decides when a session expires. A client that is connected to a
// follower is heard by the follower. The follower writes down which sessions it has
// heard. It tells the leader when the leader asks, every half tick, in its ping to the
// follower. If the follower dies in between, or is cut off and goes on answering
// its clients (it may for syncLimit ticks), the leader counts from what it was told
// before. That can be a third of the timeout earlier than our last ping.
//
// So a session that holds something (BeginHold) counts from contacts that the
// leader is known to have. This is how it knows. Follower and leader have one
// connection; each end handles what comes in its order. (Read in ZooKeeper 3.8.0:
// LearnerHandler.run applies the sessions in a ping's answer before it reads on;
// Learner.ping answers in the thread that reads; a sync, and a write, goes through
// PrepRequestProcessor to ProposalRequestProcessor, whose answer is queued behind
// the pings that were queued before.) Let c be a contact that was answered at u:
//
//  1. A sync is sent a while after u, and answered. The leader has asked the
//     follower at least once between u and its handling of the sync, for a while is
//     longer than half a tick. The follower has read that ping before the answer to
//     the sync, and has heard of c before that.
//  2. A second sync is sent after the answer to the first, and answered. The
//     follower's answer to the ping, with c in it, went to the leader before the
//     second sync did. So the leader counts from c, or later.
//
// One sync would do if pings were never late on their way to the follower. A
// follower that was paused, and dies when it runs again, shows the difference.
//
// A while is 28 % of the timeout: the smallest timeout is two ticks, and an eighth
// is for a leader that asks late. A sync is sent every tenth of the timeout; an
// answered write counts as one. A handshake is a contact that the leader has: it
// creates the session, or revalidates it, before the follower accepts it. A
// session that begins to hold something counts from the last contact that is old
// enough, until the leader has answered twice.
//
// A server whose sync is not answered for a quarter of the timeout is left for
// another one, for it may be cut off.
//
// Costs, while something is held and nowhere else: 10 requests in a session
// timeout (one a second at 10 s), which the leader answers without a transaction
// and without its disk. And the contact from which the deadline counts is 0.4 to
// 0.5 of the timeout old, where an answered ping is up to 0.33. In an outage Done
// closes after 0.45 to 0.55 of the timeout, where it was 0.62 to 0.95.
//
// # Moving a session
//
// A session belongs to whoever shows its id and password. LetGo and Resume use that:
// a session goes on in another process. ZooKeeper does not keep two processes from
// serving one session. The first one could send what it had begun, or close the
// session. So the caller keeps a rule: the first process has let go, or it was killed
// and waited for, before Resume is called. Then:
//
//   - What the first one has sent was carried out before the server answers Resume, or
//     never will be. A server that takes up a session ends the connection that it had
//     there. On another server the leader refuses what comes from the old one
//     (SessionMovedException), except for a close. So a process that may have begun to
//     close the session has not left it to be resumed. LetGo sends none.
//   - Resume syncs before it returns. So what it finds is all that there is.
//   - The handshake is a contact that the leader has: the deadline counts from there.
//     Before it, the deadline counts from the ticket's contact. A session whose
//     deadline has passed is lost, also where a server would still take it up: who
//     held something has been told so.
//   - From Resume to DropRest the session counts as one that holds something. Nothing may
//     be taken up yet, but somebody may go by what it held, and by its contacts.
//   - A handshake is never one for a new session, whatever go-zookeeper believes. If the
//     server does not answer with the ticket's id, the session is lost. Nothing is
//     closed until it has been taken up.
//   - The ticket has the session's identity, without which the places of before could not
//     be handed over.
//
// # Assumptions
//
// The leader asks its followers every half tick, as long as it answers them, and
// grants no timeout below two ticks. (minSessionTimeout can be set lower, and an
// observer that follows a follower, observerMasterPort, passes contacts on in two
// steps. Both need a timeout of four ticks.)
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
package session
