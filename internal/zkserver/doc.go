// Package zkserver is an in-process ZooKeeper server. It behaves as a standalone Apache
// ZooKeeper 3.9.6, 3.8.0 or 3.4.13 ([Config.Like]) and reports that version. It also plays
// ClickHouse Keeper. It speaks ZooKeeper's client protocol over any [net.Conn], so clients
// in every language can use it.
//
// It has two uses. A newcomer can run the recipes without installing Java. And a test can
// inject faults that a real server does not produce on request. The server loses a reply
// after the commit, holds a commit back, or expires a session at a chosen request. It
// counts every operation. It runs on the virtual time of [testing/synctest] over
// [net.Pipe].
//
// # Not for production
//
// The server keeps everything in memory and loses it when the process ends. It has no
// ensemble, no log, no snapshot, no quota and no TLS. A [Follower] is only a second way to
// reach the same data.
//
// # How it differs from ZooKeeper
//
// The references are Apache ZooKeeper 3.9.6, 3.8.0 and 3.4.13, in Debian's builds. One
// suite of scripts (testdata/conformance) runs against this server and the real ones, and
// the transcripts must be equal. They show error codes and their precedence, every Stat
// field, transaction ids, and the order of watch events and replies. Other versions of a
// release line can answer differently: 3.9.3 still sends events of setWatches for a znode
// that the client may not read. Known differences:
//
//   - A session expires as soon as its timeout has passed. ZooKeeper rounds up
//     to its next tick, so it expires the same session up to one tick later.
//   - The order of the names in a listing is unspecified in both, and differs.
//   - Sequence numbers wrap from 2147483647 to -2147483648, as ZooKeeper
//     documents. 3.8.0 itself does not: see [Server.SetSequence].
//   - Before 3.9, ZooKeeper never answers a check outside a multi. This server
//     refuses it as 3.9 does.
//   - createTTL always works. ZooKeeper needs zookeeper.extendedTypesEnabled
//     for it, and otherwise answers with Unimplemented.
//   - Quotas, SASL and reconfiguration are missing. Their requests are
//     answered like unknown ones: Unimplemented, and the connection is closed.
//   - Replies to authentication requests are in the order of the requests.
//     ZooKeeper may send one before the replies to earlier requests.
//
// # ClickHouse Keeper
//
// [Keeper22] and [Keeper26] play what the sources, issues and pull requests of ClickHouse
// say. No Keeper was compared. What they do otherwise than ZooKeeper is the data of a profile
// (profile.go):
//
//   - Session ids are 1, 2, 3 and so on. A handshake with an id gives a new session. The old
//     one lives on until its timeout.
//   - A close, an unsupported request and one that cannot be decoded get no reply. The
//     connection ends. Only the close ends the session.
//   - Pings, syncs and authentication are entries of the log: each uses a transaction id, and a
//     follower forwards them. Reads that a follower answers do not extend the session.
//   - A server that cannot open a session answers with protocol version 42 and session -1.
//   - The parent's cversion counts sets of its children, and its pzxid no deletions.
//   - The creation of a sequential znode fires the data watch of the path without a number.
//   - Clients can read the directory /keeper, but cannot change it.
//
// Missing are the requests that only Keeper has (500 and above) and multiRead, whose errors
// have a format of their own; so their feature flags are off. Access lists are checked as in
// ZooKeeper. Sessions expire at their timeout, not at the next of Keeper's rounds.
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
// Inside a [testing/synctest] bubble, create the server in the bubble, use only
// [Server.ServeConn] with pipes, and close the server before the bubble ends.
package zkserver
