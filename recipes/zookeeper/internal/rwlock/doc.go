// Package rwlock has the locks with readers and writers: the shared lock and the
// priority lock.
//
// # Shared lock and its revocation
//
// They follow ZooKeeper Recipes, "Shared Locks" and "Revocable Shared Locks", and
// diverge in this:
//
//   - Znodes are named _c_<guid>-read-<sequence>, with the GUID first, as those of
//     locks are.
//   - A writer can become a reader, by a mark in the data of its znode. The text
//     has no such step, and a new read- znode would stand behind writers that
//     wait. See passes for why no other writer can get in between.
//   - The text has each contender watch its own znode from the creation on. Here a
//     holder does from the first call of Revoked or Done on. A waiter learns of a
//     request when it is granted: until then it could give up only its place.
//   - The text's "unlock" is written in front of what the znode holds, not over
//     it. A bare "unlock", as the text writes it, counts too.
//   - The text lets the revoker delete the znode "after some length of time". Here
//     that is the grace that the contender stored when it joined.
//
// # Priority lock
//
// It has no text: "revocable read-write priority locks" are what the guide only
// imagines. Package recipes says what it is and why two can never be granted;
// waiter.claim has the step that grants. A claim costs a writer one listing more
// than a reader. In return, readers that are granted together need not claim one
// after the other: if their claims refused each other, n readers would need
// n(n+1)/2 transactions.
package rwlock
