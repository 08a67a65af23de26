// Package zookeeper implements the contract of package recipes on ZooKeeper,
// in this process. [Open] is the way in.
//
// How sessions are kept is in package session, how contenders wait in package
// line; what is here is the shape of each recipe: the names of its znodes and
// what it reads.
//
// # Shared lock and its revocation
//
// Follow ZooKeeper Recipes, "Shared Locks" and "Revocable Shared Locks". Where
// they diverge: nodes are named _c_<guid>-read-, with the guid first, as locks
// are. A writer can become a reader, by a mark in its node's data, which the text
// has not: a read- node of its own would stand behind writers that wait (see
// passes in sharedlock.go for why no writer can get in between). The text has
// each contender watch its own node from the creation on; here a holder does
// from the first call of Revoked or Done on, and one that waits hears of a
// request when it is granted, because there is nothing that it could give up but
// its place. The text's "unlock" is written in front of what the node holds, not
// over it; a bare "unlock", as the text writes it, is heeded too. "Some length of
// time" is what the contender has allowed, and stored, when it was created.
//
// # Semaphore
//
// Has no text. It is the line of "Locks" with the first n granted, and n watches
// for each who waits, which package line argues for. The number of permits is
// agreed on in the data of the path.
//
// # Priority lock
//
// Has no text either: "revocable read-write priority locks" are what the guide
// only imagines. claim.go has the step that grants, and the arguments for it.
// It costs a writer one listing more than a reader, so that readers who are let
// in together need not claim one after the other: each claim of theirs refusing
// the others would make n(n+1)/2 transactions for n readers.
//
// # Group membership
//
// Follows ZooKeeper Recipes, "Out of the Box Applications": members are
// ephemeral children of the group's node. The text leaves open what they are
// called and what happens when the reply to a creation is lost. A member
// that the application does not name gets a GUID, as the text has it for locks.
// One that it names is told from another's by its owner and its czxid: a session
// creates a name in one call at a time, and a node of that name that it owns and
// that is younger than the call is the call's. The node that is stood by (type
// owned) is the same for groups, names and double barriers.
//
// A member watches its own node, by the watch on children that an ephemeral node
// never has, so that changes of its data wake nobody but those who watch the
// group. Those keep a mirror and read again only what a watch has told of.
//
// # Barriers
//
// Follows ZooKeeper Recipes, "Barriers", step by step, but for a read in place of
// exists(), which leaves no watch where there is no barrier. The barrier node is
// persistent and is the path itself. Beyond the text, who waits wakes and looks
// again when the connection was lost; and a placement or removal whose reply was
// lost is sent again only if it is known not to have happened, by the czxid of
// the barrier and the pzxid of its parent, because meanwhile somebody may have
// removed it, or placed another.
//
// # Double barriers
//
// Follows ZooKeeper Recipes, "Double Barriers", and diverges in one thing: ready
// names, in its data, the members that it lets in. The text's ready is only
// there, and so lets in whoever comes later, which makes the barrier of the text
// good for one use and one number of members. From it follow all the rest:
//
//   - The member that sees enough others writes ready in one transaction with a
//     check of each member that it names, so that nobody enters with fewer.
//   - A ready that names nobody who is there is replaced; one that does is left,
//     and surplus members wait until the lowest of those has gone.
//   - Leaving is the text's procedure among the members of one ready. Nothing
//     that happens to ready then is looked at.
//   - The last to leave deletes ready with its own node.
//
// Members are sequential, so that lowest and highest are the oldest and the
// youngest, and each generation is formed of those who have waited longest.
//
// # Names
//
// Follow ZooKeeper Recipes, "Out of the Box Applications", where they are
// "provided directly by the ZooKeeper API": a name is a child of the directory,
// registered once because a znode is created once. What the API does not provide
// is whose a name is when the reply was lost: for ephemeral ones as for members
// of a group, for persistent ones by a receipt (session.CommitOnce), which is why
// a session keeps an ephemeral child _c_<guid>-receipt-<sequence> beside them.
//
// # Configuration
//
// Follows ZooKeeper Recipes, "Out of the Box Applications": keys are znodes, and
// the API does the work. It diverges in what is compared. The API compares
// versions, which overflow and begin again; here the caller names the mzxid of the
// value that it has seen, which is compared with what is there, and the change is
// sent with the version that was read with it, once (session.CommitOnce). The
// receipt makes it known, after a lost reply, whose change it was, even if
// another has written the same value. Nodes are persistent, parents too.
//
// # Counters and latches
//
// Follow no text. A counter is a compare-and-set loop on a decimal number, each
// change once by a receipt, a child of the counter's znode. (The number could hold
// a GUID of its last writer instead, but not of the one before him, and an
// operator could not set it with a shell.) A latch is such a number, and a node
// open that the transaction creates which counts to 0; those who wait watch open,
// as those who enter a double barrier watch ready, and not the number.
//
// # Queues and priority queues
//
// Follow ZooKeeper Recipes, "Queues" and "Priority Queues": elements are named
// queue-<sequence> and queue-YY-<sequence>, as written there, and a listing is
// used until it is exhausted or, with priorities, until its watch fires. Where
// the text is silent or loses elements, this differs:
//
//   - Elements are persistent; the text's ephemeral ones go with their
//     producer's session (QueueConfig.Ephemeral). So is the queue's node: a
//     container would be removed when it is empty, and names start again.
//   - What puts, takes, claims and acknowledges is one transaction each, with a
//     receipt (session.CommitOnce), so that a lost reply neither puts twice nor
//     leaves open who took an element. The session keeps one receipt below
//     receipts for each transaction that it has under way at a time.
//   - A claim is claims/<element>-<attempt>, ephemeral, created in one
//     transaction that sets the element's data to what it is: the version counts
//     the deliveries. Its name is used once, so that a deletion that comes late
//     hits nobody else's, and a claim of the version that was read is known to
//     stand or to have ended. Dead letters are below dead.
//   - A bounded queue has the child bound, whose version every bounded put
//     changes: a put whose count of the elements is outdated is refused.
//
// What it costs, once the session's receipt exists: a put, of one element or
// many, 1 write (bounded: and 2 reads); a Take or a Receive 1 write and 1 read,
// and 1 read more for each listing (2 where there are claims), which with
// priorities is each time; Ack and Return 1 write. While waiting, nothing; an
// element wakes every session that waits, as in the text.
package zookeeper
