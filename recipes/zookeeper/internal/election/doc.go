// Package election has the leader election.
//
// It follows ZooKeeper Recipes, "Leader Election": the line of "Locks" with znodes
// named n_, which package line has. The text adds that the application "may consider
// creating a separate znode to acknowledge that the leader has executed the leader
// procedure". Here that is Acknowledge: an ephemeral znode below acks, whose name is
// known from the leader's znode.
//
// An observer watches the leader's znode and its acknowledgement if that
// exists, else the list of acknowledgements. So candidates that come and go behind
// the leader do not wake it.
package election
