// Package zkserver is a standalone ZooKeeper server that lives inside the
// process that uses it. It speaks ZooKeeper's client protocol over any
// [net.Conn], so any client, in any language, can talk to it.
//
// It exists for two uses. A newcomer can run the recipes without installing Java. And
// a test can have it do what no real server does. It loses a reply after the commit,
// holds a commit, or expires a session at a chosen request. It counts every operation.
// It runs on the virtual time of [testing/synctest] over [net.Pipe].
//
// # Not for production
//
// Everything is kept in memory and is gone when the process ends. There is one server:
// no ensemble, no log, no snapshot, no quota and no TLS.
//
// # How it differs from ZooKeeper
//
// The authority is Apache ZooKeeper 3.8.0. One suite of scripts
// (testdata/conformance) runs against both servers, and the transcripts must be equal.
// They show error codes and their precedence, every Stat field, transaction ids, and
// the order of watch events and replies. Known differences:
//
//   - A session expires as soon as its timeout has passed. ZooKeeper rounds up
//     to its next tick, so it expires the same session up to one tick later.
//   - The order of the names in a listing is unspecified in both, and differs.
//   - Sequence numbers wrap from 2147483647 to -2147483648, as ZooKeeper
//     documents. 3.8.0 itself does not: see [Server.SetSequence].
//   - ZooKeeper 3.8.0 never answers a check outside a multi; here it is
//     answered with the node's Stat.
//   - Quotas, SASL and reconfiguration are missing. Their requests are
//     answered like unknown ones: Unimplemented, and the connection is closed.
//   - An authentication reply keeps its place among the replies of its
//     connection. ZooKeeper may send it ahead of earlier requests.
//
// # Use
//
//  1. [Listen] for a server on a loopback port, or [New] with
//     [Server.Serve] or [Server.ServeConn] for connections of your own.
//  2. Connect clients to [Server.Addr].
//  3. Inject failures with [Server.SetFault], [Server.ExpireSession],
//     [Server.CloseConnection], [Server.RefuseConnections], [Server.Freeze].
//  4. Inspect the outcome with [Server.Tree], [Server.Watches],
//     [Server.Sessions] and [Server.Counters].
//  5. [Server.Close].
//
// Inside a [testing/synctest] bubble, make the server in the bubble, use only
// [Server.ServeConn] with pipes, and close it before the bubble ends.
package zkserver
