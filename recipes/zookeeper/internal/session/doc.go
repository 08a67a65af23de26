// Package session is one ZooKeeper session. It has, in one place, what every recipe needs to be
// correct:
//
//   - Its life and its end. A session is never replaced by another.
//   - The rule for grants ([Session.BeginHold]). Package lease argues why it is enough.
//   - Creations that survive a lost reply (protected create), and deletions that are retried
//     until they are confirmed.
//   - Transactions that are committed once even if their reply is lost (receipts).
//   - Watches that all waiters of a session share, because a watch cannot be cancelled.
//
// It sends its requests with package conn, which maintains the connections.
//
// Waiting code follows one pattern: take the channel of Connected, read, and wait for the watch,
// the channel, the session's loss or the context; then start over. So it wakes on its event and on
// every loss of the connection, reads again after the reconnect, and needs no timers.
//
// # Resuming a session in another process
//
// A session belongs to any process that presents its id and password. LetGo and Resume use that to
// continue a session in another process. ZooKeeper does not prevent two processes from serving one
// session: the first one could send a request that it had begun, or close the session. So the
// caller must follow a rule: before Resume, the first process has called LetGo, or it was killed
// and waited for. Then:
//
//   - Everything that the first process has sent was carried out before the server answers
//     Resume, or never will be. A server that resumes a session ends its connection of that
//     session. If it is resumed on another server, the leader refuses requests that come through
//     the old one (SessionMovedException), except a close. So a process that may have begun to
//     close the session cannot let it be resumed. LetGo sends no close.
//   - Resume commits a transaction before it returns. So it reads everything that was committed.
//   - The leader has received the handshake, so the deadline counts from there. Until the server
//     answers it, the deadline counts from the ticket's contact, as in the first process.
//     If the deadline has passed, the session is lost, even if a server would still accept it,
//     because its holders were notified of the loss.
//   - From Resume to DropRest the session counts as one that holds something. Nothing may have
//     been resumed yet, but the host may rely on what the session held, and on its contacts.
//   - A handshake never creates a session here. If the server does not answer with the ticket's
//     id, the session is lost. Nothing is closed until the session is resumed.
package session
