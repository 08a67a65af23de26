// Package group has group membership and the directory of names.
//
// # Group membership
//
// It follows ZooKeeper Recipes, "Out of the Box Applications": members are ephemeral
// children of the group's znode. The text leaves open how members are named, and what
// happens when the reply to a creation is lost. A member that the application does not
// name gets a GUID, as the text has it for locks. A member that it names is identified
// by its owner and czxid. A session creates a name in one call at a time. So if it owns
// a znode of that name, and the znode is younger than the call, the call created it.
//
// A member watches its own znode, by a watch on the children that an ephemeral znode
// never has. A change of its data thus wakes only those that watch the group. They keep
// a mirror, and read again only what a watch has reported.
//
// # Names
//
// They follow the same section, where names are "provided directly by the ZooKeeper
// API". A name is a child of the directory, and is registered once because a znode is
// created once. What the API does not tell is who owns a name after a lost reply.
// Ephemeral names are identified like the members of a group, persistent names by a
// receipt (session.Session.CommitWithReceipt). Therefore a session keeps an ephemeral child
// _c_<guid>-receipt-<sequence> beside the names.
package group
