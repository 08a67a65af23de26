package recipes

// Token is a fencing token: the czxid (the ZooKeeper transaction id of the
// creation) of the holder's znode. Contenders are granted in the order in which
// ZooKeeper created their znodes, so of two grants of one path the later has
// the larger token. Tokens of different paths on one ensemble are comparable
// too, but mean nothing together. Zero is never a token.
type Token int64
