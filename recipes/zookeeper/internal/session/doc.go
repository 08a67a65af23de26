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
//     that was answered, and is lost when the negotiated timeout has passed.
//   - Creation that survives a lost reply (protected create), and deletion that
//     goes on until it is known.
//   - Watches shared by all waiters of a session, because go-zookeeper cannot
//     take a watch back.
//
// Waiting code follows one pattern: take the channel that Connected returns,
// look, and wait for the watch, the channel, the session's loss or the context;
// then start over. So it wakes on its event and on every loss of the
// connection, looks again when the connection is back, and needs no timers.
//
// # What go-zookeeper/zk 1.0.4 needs to be protected from
//
// Everything that its API cannot express is done on the bytes, in conn.go, under
// its feet: bounding the handshake (its own limit is ten times the receive
// timeout, and none for the body), measuring when the server was last heard,
// counting, keeping lastZxid (which the library reads and writes from different
// goroutines without synchronisation), and having watches from before a reconnect
// armed again without a word on what has changed since (which would come when
// whoever waited may have looked again already).
//
// # Assumptions
//
// The server that answers pings is not itself cut off from its ensemble for
// longer than the session timeout: a follower goes on answering for up to
// syncLimit ticks after it lost its leader, and no client can see that. The
// guarded write is safe even then.
package session
