// Package conn has the connections of one ZooKeeper session, and is the only part of
// zkrecipes that talks to go-zookeeper/zk.
//
// # What go-zookeeper/zk 1.0.4 does
//
// go-zookeeper makes the handshake, sends pings and credentials, connects again when a
// connection has ended, and closes the session. It does so over a [Conn], which reads along.
//
// # What goes past it
//
// All other requests, and watch events, go past it, on the bytes below it ([Sender]). It
// would set aside buffers for the largest packet, twice for each session, and never give
// them back. What a session takes here follows what it sends and receives. Nor can
// go-zookeeper send several requests in one write, nor create2, nor setWatches.
//
// # What it needs to be protected from
//
//   - When a session has expired it would open another one, and send requests in it that were
//     queued for the first. Here the dialer refuses once the session is over ([Wire.Shut]). So
//     no request can ever run in a session that it was not meant for.
//   - The handshake is bounded. The library's own limit is ten times the receive
//     timeout, and the body has none.
//   - Contacts with the server are noted (package lease), and everything is counted.
//   - lastZxid is kept here. The library reads and writes it from different
//     goroutines without synchronisation.
//   - It would keep watches of its own, and arm them again after a reconnect. What has
//     changed since would be told when the waiters may have looked already.
//   - A reply is awaited as long as it arrives, however large it is.
package conn
