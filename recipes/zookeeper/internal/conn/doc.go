// Package conn maintains the connections of one ZooKeeper session and sends its requests. Only
// this package of zkrecipes calls go-zookeeper/zk.
//
// # The role of go-zookeeper/zk 1.0.4
//
// go-zookeeper makes the handshake, sends pings and credentials, reconnects when a connection has
// ended, and closes the session. It does so over a [Conn], which reads all its bytes.
//
// # Requests that bypass it
//
// All other requests, and watch events, bypass go-zookeeper ([Sender]). The library would
// allocate buffers for the largest packet twice per session and never release them. Here the
// memory of a session follows what it sends and receives. go-zookeeper also cannot send several
// requests in one write, and it has neither create2 nor setWatches.
//
// # Defects that this package prevents
//
//   - When a session has expired, go-zookeeper opens another one, and sends it the requests that
//     were queued for the first. Here the dialer refuses once the session has ended
//     ([Wire.Shut]). So no request runs in a session that it was not meant for.
//   - The handshake is bounded. The library's own limit is ten times the receive timeout, and
//     it does not bound the body.
//   - Package lease receives all contacts with the server. All requests are counted.
//   - lastZxid is kept here. The library reads and writes it from different goroutines without
//     synchronization.
//   - The library would keep its own watches, and set them again after a reconnect. Changes
//     since then would be reported after waiters may have read again.
//   - A reply may be large: the time limit restarts while it is still arriving.
package conn
