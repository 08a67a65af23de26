// Package config has the configuration, the counter and the latch: values that
// sessions change by compare-and-set.
//
// # Configuration
//
// It follows ZooKeeper Recipes, "Out of the Box Applications": keys are znodes, and the
// API does the work. It diverges in the value that is compared. The API compares versions,
// which overflow and start again. Here the caller names the mzxid of the value that it has
// read. That is compared with the current mzxid. The change is then sent once, with the
// version that was read together with that mzxid, and with the count of deletions that was
// known before (znode.ReadCounted): if no key beside it was deleted since, the version is that
// of the same znode. After a lost reply, the receipt shows which session made the change, even
// if another client has written the same value. Znodes and their parents are persistent.
//
// Rejected: a marker below each key, ephemeral while a session compares. It would also notice
// deletions by other programs, but cost a write for each change, wake all clients that watch
// the tree, and make other programs' deletions fail.
//
// # Counter and latch
//
// They have no source text. A counter is a compare-and-set loop on a decimal number. A
// receipt, a child of the counter's znode, makes each change happen once, and shows that the
// znode was not replaced since it was read. The number could
// hold a GUID of its last writer instead. But that would say nothing about earlier writers,
// and an operator could not set the number with a shell.
//
// A latch is such a number, and a znode open. The transaction that counts to 0 creates
// open. Waiters watch open and not the number, as members that enter a double barrier
// watch ready.
package config
