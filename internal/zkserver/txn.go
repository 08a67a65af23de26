package zkserver

import (
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// txn is one transaction. It uses a zxid whether or not it succeeds. It changes the tree
// at once, and rollback undoes the changes. Only commit fires watches, for one change
// after the other.
type txn struct {
	srv     *Server
	zxid    int64
	time    int64
	undo    []func()
	changes []change
}

func (s *Server) newTxn() *txn {
	s.tree.zxid++
	return &txn{srv: s, zxid: s.tree.zxid, time: time.Now().Add(s.ahead).UnixMilli()}
}

func (t *txn) commit() {
	for _, ch := range t.changes {
		t.srv.announce(ch, t.zxid)
	}
}

func (t *txn) rollback() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
	t.undo, t.changes = nil, nil
}

// add creates a znode. Its parent must exist, and its path must be free.
func (t *txn) add(path string, data []byte, acl []ACL, owner int64) *znode {
	tree := t.srv.tree
	parentPath, name, _ := splitPath(path)
	parent := tree.get(parentPath)
	n := &znode{
		data: data, acl: acl, owner: owner,
		czxid: t.zxid, mzxid: t.zxid, pzxid: t.zxid,
		ctime: t.time, mtime: t.time,
		showsOwner: owner == ownerContainer && t.srv.profile.showsContainers,
	}
	cversion, pzxid := parent.cversion, parent.pzxid
	parent.cversion++
	parent.pzxid = t.zxid
	tree.put(parentPath, path, name, n)
	t.undo = append(t.undo, func() {
		tree.take(parentPath, path, name, n)
		parent.cversion, parent.pzxid = cversion, pzxid
	})
	t.changes = append(t.changes, change{eventCreated, path, path, acl, parent.acl})
	return n
}

// remove deletes a znode, which must exist and have no children.
func (t *txn) remove(path string) {
	tree := t.srv.tree
	parentPath, name, _ := splitPath(path)
	n, parent := tree.get(path), tree.get(parentPath)
	pzxid := parent.pzxid
	if !t.srv.profile.childSets {
		parent.pzxid = t.zxid
	}
	tree.take(parentPath, path, name, n)
	t.undo = append(t.undo, func() {
		tree.put(parentPath, path, name, n)
		parent.pzxid = pzxid
	})
	t.changes = append(t.changes, change{eventDeleted, path, path, n.acl, parent.acl})
}

// set replaces the data of a znode.
func (t *txn) set(path string, n *znode, data []byte) {
	old := *n
	n.data, n.version, n.mtime, n.mzxid = data, n.version+1, t.time, t.zxid
	t.undo = append(t.undo, func() {
		n.data, n.version, n.mtime, n.mzxid = old.data, old.version, old.mtime, old.mzxid
	})
	if t.srv.profile.childSets && path != "/" {
		parent := t.srv.tree.get(parentOf(path))
		parent.childSets++
		t.undo = append(t.undo, func() { parent.childSets-- })
	}
	t.changes = append(t.changes, change{event: eventDataChanged, path: path, watched: path, acl: n.acl})
}

// multi executes all parts or none. The code of the reply is 0 in both cases. Each part
// has a result with a code. After a failure, that is 0 for the parts before the failed
// one, and RuntimeInconsistency for those after it.
func (s *Server) multi(t *txn, req task, f *jute.Encoder) {
	results := make([]result, 0, len(req.call.parts))
	failed, failure := -1, codeOK
	for i, part := range req.call.parts {
		r, c := s.apply(t, req.c, part)
		if c != codeOK {
			failed, failure = i, c
			break
		}
		results = append(results, r)
	}
	for i, part := range req.call.parts {
		switch {
		case failed < 0:
			f.MultiHeader(int32(resultType(part.op)), int32(codeOK))
			results[i].encode(f, part.op)
		case i < failed:
			multiError(f, codeOK)
		case i == failed:
			multiError(f, failure)
		default:
			multiError(f, codeRuntimeInconsistency)
		}
	}
	f.MultiEnd()
	if failed >= 0 {
		t.rollback()
		return
	}
	t.commit()
}

// resultType returns the type of a part in the reply. It is create2 for every kind of
// create whose result has a Stat.
func resultType(op Op) Op {
	if op == OpCreateContainer || op == OpCreateTTL {
		return OpCreate2
	}
	return op
}

// multiRead answers several reads of one state. A read that fails does not affect the
// others.
func (s *Server) multiRead(req task, f *jute.Encoder) {
	for _, part := range req.call.parts {
		sub := &jute.Encoder{}
		c := s.read(task{c: req.c, call: part}, sub)
		if c != codeOK {
			multiError(f, c)
			continue
		}
		f.MultiHeader(int32(part.op), int32(codeOK))
		f.Bytes = append(f.Bytes, sub.Bytes...)
	}
	f.MultiEnd()
}

func multiError(f *jute.Encoder, c code) {
	f.MultiHeader(int32(opError), int32(c))
	f.Int32(int32(c))
}
