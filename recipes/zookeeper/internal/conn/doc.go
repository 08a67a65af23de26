// Package conn has the connections of one ZooKeeper session. It is the only package of zkrecipes
// that calls go-zookeeper/zk.
//
// # What go-zookeeper/zk 1.0.4 does
//
// go-zookeeper makes the handshake, sends pings and credentials, reconnects when a connection has
// ended, and closes the session. It does so over a [Conn], which reads all its bytes.
//
// # What bypasses it
//
// All other requests, and watch events, bypass go-zookeeper ([Sender]). It would allocate buffers
// for the largest packet twice per session, and never release them. Here the memory of a session
// follows what it sends and receives. go-zookeeper also cannot send several requests in one
// write, nor create2, nor setWatches.
//
// # Defects that this package prevents
//
//   - When a session has expired, go-zookeeper opens another one, and sends it the requests that
//     were queued for the first. Here the dialer refuses once the session has ended
//     ([Wire.Shut]). So no request runs in a session that it was not meant for.
//   - The handshake is bounded. The library's own limit is ten times the receive timeout, and
//     it does not bound the body.
//   - Contacts with the server are reported to package lease, and everything is counted.
//   - lastZxid is kept here. The library reads and writes it from different goroutines without
//     synchronization.
//   - The library would keep its own watches, and set them again after a reconnect. Changes
//     since then would be reported after waiters may have read again.
//   - A reply may be large: the time limit restarts while it is still arriving.
package conn
