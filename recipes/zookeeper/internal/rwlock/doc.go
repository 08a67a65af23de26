// Package rwlock has the locks with readers and writers: the shared lock and the
// priority lock.
//
// # Shared lock and its revocation
//
// They follow ZooKeeper Recipes, "Shared Locks" and "Revocable Shared Locks". They diverge
// in the following:
//
//   - Znodes are named _c_<guid>-read-<sequence>, with the GUID first, as in the
//     names of locks.
//   - A writer can become a reader, by a mark in the data of its znode. The text has no
//     such step. With a new read- znode, the reader would have to wait behind the writers
//     that wait already. See passes for why no other writer can be granted in between.
//   - In the text, each contender watches its own znode from the creation on. Here a
//     holder watches it from the first call of Revoked or Done on. A waiter is
//     notified of a request when it is granted. Before that, it holds nothing to give up.
//   - The text's "unlock" is written in front of the data of the znode, not over it. A
//     bare "unlock", as the text has it, is a request too.
//   - The text lets the revoker delete the znode "after some length of time". Here
//     that is the grace that the contender stored when it joined.
//
// # Priority lock
//
// It has no source text: the guide only imagines "revocable read-write priority locks".
// Package recipes defines it, and says why two writers can never be granted. The
// transaction that grants is waiter.claim. A claim costs a writer one listing more
// than a reader. In return, readers that are granted together do not refuse each other's
// claims. Otherwise n readers would need n(n+1)/2 transactions.
package rwlock
