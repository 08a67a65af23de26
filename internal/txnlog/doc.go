// Package txnlog reads the files in which a ZooKeeper server keeps its state: transaction logs
// (version-2/log.*) and snapshots (version-2/snapshot.*), as servers of 3.4 to 3.9 write them.
//
//  1. [Find] finds the files of a server. [Files.Base] is the snapshot that a log continues.
//  2. [Open] tells a log from a snapshot by its first bytes.
//  3. [Log.Next] reads a log record by record. [Log.Header] is the header of the record, and
//     [Log.Changes] decodes it. A caller that needs few records skips the others at the cost
//     of their checksum.
//  4. [Snapshot.Read] passes the sessions and the znodes of a snapshot to two functions.
//
// Memory does not grow with the size of a file, only with its largest record. Of a compressed
// file, a record of a log or a field of a snapshot can have at most 64 MiB.
//
// # What a server logs
//
// A server logs each proposal of the leader, including requests that have failed, which are
// records of type Error. Zxids are consecutive within an epoch, so a missing zxid is a missing
// record. A log is allocated in advance and ends with zeros. After a crash its last record can
// be torn. The last records of a server that was cut off from its leader may never have been
// committed: ZooKeeper truncates them when the server rejoins.
//
// A snapshot is fuzzy: the server writes it while it applies transactions. Its name has the last
// zxid that had been applied when the writing began. The snapshot can contain znodes that later
// transactions have created, and can miss znodes that these have deleted.
//
// The formats are ZooKeeper's FileTxnLog, SerializeUtils, FileSnap and DataTree. The golden files
// in testdata were written by servers of the versions in their names.
package txnlog
