// Package audit rebuilds wait queues from the files of one ZooKeeper server, and checks what
// ZooKeeper has granted. It never connects to a server.
//
//  1. [txnlog.Find] finds the transaction logs and the snapshots.
//  2. [Audit] reads the logs once, in order, and returns a [Report].
//
// Memory grows with the contenders and the elements of queues at the same time, and with the number
// of lines, queues and decided transactions. It does not grow with the length of the logs, and not
// with the other znodes of a snapshot or with their data.
//
// # What a log proves
//
// A contender holds from the transaction after which no contender blocks it, until its znode is
// deleted: by itself, by the end of its session, or by another client. The fencing token is the
// zxid that created its znode. These are facts of the log, because every server applies the same
// transactions in the same order. So the report shows whether ZooKeeper ever granted a path
// twice, and who broke a hold.
//
// A log does not show when a client noticed its grant, or the loss of it. A process that was
// paused can continue after its session has expired. Only its writes show that: see
// [Config.Writes].
//
// Times are those of the leader's clock. They can jump when the leader changes, so the order is
// that of the zxids, and a negative duration counts as zero.
//
// # What a log does not show
//
//   - The permits of Curator's semaphore are only in its clients. The report has the largest
//     number of leases at a time.
//   - A reader of Curator that belongs to the thread of the writer ahead of it is granted at once.
//     Here it is granted when that writer leaves.
//   - A client of Curator that was disconnected for its session timeout opens another session, and
//     deletes the znode of its former lock through it. Here that is a hold which another client broke.
//   - A contender that meets a third-party contender leaves at once, if it is one of zkrecipes. Its
//     name does not show that. So a contender that leaves within [Refusal] counts as refused, and
//     not as one that held beside another.
//   - The last transactions of a server that was cut off from its leader may never have been
//     committed. Read the files of a server of the majority.
package audit
