package recipes

// Token is a fencing token: the czxid of the holder's znode, which is the ZooKeeper
// transaction that created it. Contenders are granted in the order in which
// ZooKeeper created their znodes. So of two grants of one path, the later has the
// larger token. Tokens of different paths on one ensemble can be compared too, but
// the result says nothing. Zero is never a token.
type Token int64
