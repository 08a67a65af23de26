// Package session is one ZooKeeper session. It owns, once, what every recipe needs for being
// correct:
//
//   - Its life and its end, which come once: a session is never replaced by another.
//   - The rule for grants ([Session.BeginHold]). Package lease argues why it is enough.
//   - Creation that survives a lost reply (protected create), and deletion that
//     goes on until it is known.
//   - Transactions that happen once though their reply is lost (receipts).
//   - Watches shared by all waiters of a session, because a watch cannot be taken
//     back.
//
// It sends by package conn, which has the connections.
//
// Waiting code follows one pattern: take the channel that Connected returns,
// look, and wait for the watch, the channel, the session's loss or the context;
// then start over. So it wakes on its event and on every loss of the
// connection, looks again when the connection is back, and needs no timers.
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
//     never will be. A server that resumes a session ends the connection that it had
//     there. On another server the leader refuses what comes from the old one
//     (SessionMovedException), except for a close. So a process that may have begun to
//     close the session has not left it to be resumed. LetGo sends none.
//   - Resume syncs before it returns. So what it finds is all that there is.
//   - The handshake is a contact that the leader has: the deadline counts from there.
//     Before it, the deadline counts from the ticket's contact, which is the one from
//     which the first process counted. A session whose
//     deadline has passed is lost, also where a server would still take it up: who
//     held something has been told so.
//   - From Resume to DropRest the session counts as one that holds something. Nothing may
//     be resumed yet, but the host may rely on what the session held, and on its contacts.
//   - A handshake is never one for a new session, whatever go-zookeeper believes. If the
//     server does not answer with the ticket's id, the session is lost. Nothing is
//     closed until it has been resumed.
package session
