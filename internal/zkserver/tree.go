package zkserver

import (
	"math"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// validPath reports whether ZooKeeper accepts path for a znode. ZooKeeper checks
// UTF-16 units, so it refuses everything outside the basic plane. Broken UTF-8
// becomes U+FFFD, which it refuses too.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	for _, r := range path {
		if !validRune(r) {
			return false
		}
	}
	return true
}

func validRune(r rune) bool {
	switch {
	case r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
		return false
	}
	return true
}

// splitPath cuts at the last slash and validates nothing else, like ZooKeeper's first
// check. The parent of "/x//y" is "/x/", which does not exist, so the answer is NoNode
// and not BadArguments.
func splitPath(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// names is a set of names with a repeatable order: the order of insertion, except that
// the last name moves into the gap of a removed one. A map would iterate in a different
// order on each run, and a simulation could not be repeated.
// The zero value is empty and costs no map.
type names struct {
	list []string
	at   map[string]int
}

func (n *names) add(name string) {
	if n.has(name) {
		return
	}
	if n.at == nil {
		n.at = make(map[string]int)
	}
	n.at[name] = len(n.list)
	n.list = append(n.list, name)
}

func (n *names) has(name string) bool {
	_, ok := n.at[name]
	return ok
}

func (n *names) remove(name string) {
	i, ok := n.at[name]
	if !ok {
		return
	}
	last := len(n.list) - 1
	n.list[i] = n.list[last]
	n.at[n.list[i]] = i
	n.list[last] = ""
	n.list = n.list[:last]
	delete(n.at, name)
}

func (n *names) len() int { return len(n.list) }

// Stat is ZooKeeper's metadata of a znode. Times are in milliseconds of the Unix epoch.
type Stat = jute.Stat

// Node is one znode, as [Server.Tree] returns it.
type Node struct {
	Path string
	Data []byte
	ACL  []ACL
	Stat Stat
}

// If no session owns a znode, its owner field holds its type.
const (
	ownerContainer = math.MinInt64
	ownerTTLMask   = -1 << 56
	maxTTL         = 0xffffffffff
)

// znode counts in cversion the children ever created. That is also the next sequence
// number. stat computes the cversion that clients see from it.
type znode struct {
	data     []byte
	acl      []ACL
	children names

	czxid, mzxid, pzxid         int64
	ctime, mtime                int64
	version, cversion, aversion int32
	owner                       int64

	childSets  int32 // see [profile]
	showsOwner bool
}

func (n *znode) stat() Stat {
	kids := int32(n.children.len())
	s := Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid,
		Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: n.aversion,
		Cversion:    n.cversion*2 - kids + n.childSets,
		DataLength:  int32(len(n.data)),
		NumChildren: kids,
	}
	if n.isEphemeral() || n.showsOwner {
		s.EphemeralOwner = n.owner
	}
	return s
}

func (n *znode) isContainer() bool { return n.owner == ownerContainer }
func (n *znode) isTTL() bool       { return n.owner&ownerTTLMask == ownerTTLMask }
func (n *znode) ttl() int64        { return n.owner & maxTTL }

// isEphemeral reports whether a session owns the znode.
func (n *znode) isEphemeral() bool { return n.owner != 0 && !n.isContainer() && !n.isTTL() }

// tree is the hierarchy of znodes. It is not safe for concurrent use: the
// server's mutex guards it.
type tree struct {
	zxid  int64 // of the last transaction, failed ones included
	nodes map[string]*znode

	ephemerals map[int64]*names // paths by owning session
	reapable   names            // paths of container and TTL znodes
}

func newTree(p *profile) *tree {
	t := &tree{nodes: make(map[string]*znode), ephemerals: make(map[int64]*names)}
	t.nodes["/"] = &znode{data: []byte{}, acl: openACL}
	for _, n := range p.system {
		parent, name, _ := splitPath(n.Path)
		t.put(parent, n.Path, name, &znode{data: append([]byte{}, n.Data...), acl: n.ACL, aversion: n.Stat.Aversion})
	}
	return t
}

// get returns nil if path does not exist. The empty path is the root: splitPath returns it
// as the parent of "/x".
func (t *tree) get(path string) *znode {
	if path == "" {
		path = "/"
	}
	return t.nodes[path]
}

// put adds a znode below an existing parent.
func (t *tree) put(parentPath, path, name string, n *znode) {
	t.nodes[path] = n
	t.get(parentPath).children.add(name)
	t.own(path, n)
}

func (t *tree) own(path string, n *znode) {
	switch {
	case n.isContainer(), n.isTTL():
		t.reapable.add(path)
	case n.owner != 0:
		set := t.ephemerals[n.owner]
		if set == nil {
			set = new(names)
			t.ephemerals[n.owner] = set
		}
		set.add(path)
	}
}

// take removes a znode, which must have no children.
func (t *tree) take(parentPath, path, name string, n *znode) {
	delete(t.nodes, path)
	t.get(parentPath).children.remove(name)
	switch {
	case n.isContainer(), n.isTTL():
		t.reapable.remove(path)
	case n.owner != 0:
		if set := t.ephemerals[n.owner]; set != nil {
			set.remove(path)
			if set.len() == 0 {
				delete(t.ephemerals, n.owner)
			}
		}
	}
}

// owned returns a copy of the paths that a session owns.
func (t *tree) owned(session int64) []string {
	if set := t.ephemerals[session]; set != nil {
		return slices.Clone(set.list)
	}
	return nil
}

// clone returns a copy that is good for reads only.
func (t *tree) clone() *tree {
	c := &tree{zxid: t.zxid, nodes: make(map[string]*znode, len(t.nodes))}
	for path, n := range t.nodes {
		copied := *n
		copied.children.list = slices.Clone(n.children.list)
		c.nodes[path] = &copied
	}
	return c
}

func (t *tree) dump() []Node {
	list := make([]Node, 0, len(t.nodes))
	for path, n := range t.nodes {
		list = append(list, Node{
			Path: path, Data: slices.Clone(n.data), ACL: slices.Clone(n.acl), Stat: n.stat(),
		})
	}
	slices.SortFunc(list, func(a, b Node) int { return strings.Compare(a.Path, b.Path) })
	return list
}
