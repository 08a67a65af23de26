package recipes

// Token is a fencing token: the czxid of the holder's znode, the id of the ZooKeeper
// transaction that created it. Contenders are granted in the order in which their znodes were
// created, so each grant of a path has a larger token than the grants before it. Comparing
// tokens of different paths has no meaning. Zero is never a token.
type Token int64
