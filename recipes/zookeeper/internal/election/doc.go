// Package election has the leader election.
//
// It follows ZooKeeper Recipes, "Leader Election": the wait queue of "Locks", with znodes
// named n_. Package line has the procedure. The text adds that the application "may
// consider creating a separate znode to acknowledge that the leader has executed the
// leader procedure". Here that is Acknowledge: an ephemeral znode below acks, whose name
// follows from the name of the leader's znode.
//
// An observer watches the leader's znode. It also watches the acknowledgement, or the list
// of acknowledgements as long as the leader's does not exist. So candidates that come and
// go behind the leader do not wake an observer.
package election
