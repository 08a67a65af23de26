// Package zookeeper implements the contract of package recipes on ZooKeeper,
// in this process. [Open] is the way in.
//
// How sessions are kept is in package session, how contenders wait in package
// line; what is here is the shape of each recipe: the names of its znodes and
// what it reads.
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
// Follows ZooKeeper Recipes, "Barriers", step by step. The barrier node is
// persistent and is the path itself. Beyond the text, who waits wakes and looks
// again when the connection was lost; and a placement or removal whose reply was
// lost is sent again only if it is known not to have happened, by the czxid of
// the barrier and the pzxid of its parent, because meanwhile somebody may have
// removed it, or placed another.
package zookeeper
