// Package group has group membership and the directory of names.
//
// # Group membership
//
// It follows ZooKeeper Recipes, "Out of the Box Applications": members are ephemeral
// children of the group's znode. The text does not say how members are named, and what
// happens after the reply to a creation is lost. A member that the application does not
// name gets a GUID, as in the text for locks. A member that it names is identified by its
// owner and czxid. A session creates a name in one call at a time. So if it owns a znode of
// that name, and the znode is younger than the call, the call created it.
//
// A member watches its own znode by a watch on the children that an ephemeral znode
// never has. So a change of its data wakes only the sessions that watch the group. These
// keep a mirror, and read again only the znodes that a watch has reported.
//
// # Names
//
// They follow the same section, where names are "provided directly by the ZooKeeper
// API". A name is a child of the directory. It is registered once because a znode is
// created once. But after a lost reply, the API does not show which session owns a name.
// Ephemeral names are identified like the members of a group, persistent names by a
// receipt (session.Session.CommitWithReceipt). So beside the names there is an ephemeral
// child _c_<guid>-receipt-<sequence> for each session. Unregister compares a czxid, which the
// API cannot. So it counts and checks deletions, as a configuration does (znode.ReadCounted).
package group
