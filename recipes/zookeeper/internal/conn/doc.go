// Package conn maintains the connections of one ZooKeeper session and sends its requests. Only
// this package of zkrecipes calls go-zookeeper/zk.
//
// # The role of go-zookeeper/zk 1.0.4
//
// go-zookeeper makes the handshake, sends pings, reconnects when a connection has ended, and closes
// the session. It does so over a [Conn], which reads all its bytes and adds credentials to the
// handshake.
//
// # Requests that bypass it
//
// All other requests, and watch events, bypass go-zookeeper ([Conn.Send]). The library would
// allocate buffers for the largest packet twice per session and never release them. Here the
// memory of a session follows what it sends and receives. go-zookeeper also cannot send several
// requests in one write, and it has neither create2 nor setWatches.
//
// # Defects that this package prevents
//
//   - When a session has expired, go-zookeeper opens another one, and sends it the requests that
//     were queued for the first. Here the dialer refuses once the session has ended
//     ([Wire.Shut]). So no request runs in a session that it was not meant for.
//   - The library waits ten times the receive timeout for a handshake, and without limit for its
//     body. Here SessionConfig.ConnectTimeout limits the whole handshake.
//   - The library accepts every answer to its handshake. A session timeout of 0 causes a
//     panic in one of its goroutines, which ends the process. Here each answer is checked first, and
//     a wrong one costs one attempt.
//   - The library does not report when a request was sent and answered. Here package lease
//     receives all contacts with the server, and all requests are counted.
//   - The library reads and writes lastZxid from different goroutines without synchronization.
//     Here [Wire] keeps it, and the library always sees 0.
//   - The library would set its watches again after a reconnect. They could report a change from
//     before the reconnect after a waiter has read again. Here the library has no watches.
//   - The library limits the time of a whole reply. Here the limit restarts whenever bytes arrive,
//     so a large reply may take longer.
package conn
