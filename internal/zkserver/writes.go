package zkserver

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// write executes a request that uses a transaction id, and appends the body of its reply.
func (s *Server) write(t task, f *jute.Encoder) code {
	if t.bad && s.profile.answers >= Release39 && t.call.op != OpMulti {
		return codeMarshalling // before it gets a transaction id
	}
	txn := s.newTxn()
	if t.bad {
		return codeMarshalling
	}
	if t.call.op == OpMulti {
		s.multi(txn, t, f)
		return codeOK
	}
	result, c := s.apply(txn, t.c, t.call)
	if c != codeOK {
		txn.rollback()
		return c
	}
	result.encode(f, t.call.op)
	txn.commit()
	return codeOK
}

// result has the fields of the reply to a write.
type result struct {
	path string
	stat Stat
}

func (r result) encode(f *jute.Encoder, op Op) {
	switch op {
	case OpCreate:
		f.String(r.path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		f.String(r.path)
		f.Stat(r.stat)
	case OpSetData, OpSetACL:
		f.Stat(r.stat)
	}
}

// apply makes the change of one write, alone or as part of a multi. It makes the checks in
// ZooKeeper's order, because a client sees only the first failure.
func (s *Server) apply(t *txn, c *conn, o operation) (result, code) {
	if s.profile.reserved(o.path) {
		return result{}, codeBadArguments
	}
	switch o.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return s.create(t, c, o)
	case OpDelete:
		return result{}, s.delete(t, c, o)
	case OpSetData:
		return s.setData(t, c, o)
	case OpSetACL:
		return s.setACL(c, o)
	case OpCheck:
		return result{}, s.check(c, o)
	}
	return result{}, codeUnimplemented
}

// The create flags.
const (
	flagEphemeral  = 1
	flagSequential = 2 // also set in 3 (ephemeral) and 6 (TTL)
	flagContainer  = 4
	flagTTL        = 5
	flagTTLSeq     = 6
)

func (s *Server) create(t *txn, c *conn, o operation) (result, code) {
	owner, bad := s.ownerOf(c, o)
	if bad != codeOK && s.profile.answers > Release34 { // 3.4 checks the parent first
		return result{}, bad
	}
	path := o.path
	parentPath, _, ok := splitPath(path)
	if !ok {
		return result{}, codeBadArguments
	}
	acl, ok := resolve(o.acl, c.who, s.profile.answers)
	if !ok {
		return result{}, codeInvalidACL
	}
	parent := s.tree.get(parentPath)
	switch {
	case parent == nil:
		return result{}, codeNoNode
	case !allowed(parent.acl, permCreate, c.who):
		return result{}, codeNoAuth
	case bad != codeOK:
		return result{}, bad
	}
	if o.flags == flagSequential || o.flags == flagSequential|flagEphemeral || o.flags == flagTTLSeq {
		path += fmt.Sprintf("%010d", parent.cversion)
	}
	switch {
	case !validPath(path):
		return result{}, codeBadArguments
	case s.tree.get(path) != nil:
		return result{}, codeNodeExists
	case parent.isEphemeral():
		return result{}, codeNoChildrenForEph
	}
	n := t.add(path, o.data, acl, owner)
	if s.profile.watchesRequestedPath {
		t.changes[len(t.changes)-1].watched = o.path
	}
	return result{path, n.stat()}, codeOK
}

// ownerOf checks the flags and returns the ephemeralOwner of the znode to create. The type
// of the request, not the flag, makes it a container or a TTL znode: a plain create with
// the container flag creates a plain znode.
func (s *Server) ownerOf(c *conn, o operation) (int64, code) {
	ttlMode := o.flags == flagTTL || o.flags == flagTTLSeq
	switch {
	case o.flags < 0 || o.flags > flagTTLSeq || s.profile.answers == Release34 && o.flags >= flagContainer:
		return 0, codeBadArguments
	case ttlMode && (o.ttl <= 0 || o.ttl > maxTTL), !ttlMode && o.ttl >= 0:
		return 0, codeBadArguments
	case o.op == OpCreateContainer:
		return ownerContainer, codeOK
	case o.op == OpCreateTTL && !ttlMode:
		return 0, codeBadArguments
	case o.op == OpCreateTTL:
		return ownerTTLMask | o.ttl, codeOK
	case o.flags == flagEphemeral || o.flags == flagEphemeral|flagSequential:
		return c.sess.id, codeOK
	}
	return 0, codeOK
}

func (s *Server) delete(t *txn, c *conn, o operation) code {
	parentPath, _, ok := splitPath(o.path)
	if !ok || s.profile.undeletable(o.path) {
		return codeBadArguments
	}
	parent, n := s.tree.get(parentPath), s.tree.get(o.path)
	switch {
	case parent == nil, n == nil && s.profile.answers == Release34:
		return codeNoNode
	case !allowed(parent.acl, permDelete, c.who):
		return codeNoAuth
	case n == nil:
		return codeNoNode
	case o.version != -1 && o.version != n.version:
		return codeBadVersion
	case n.children.len() > 0:
		return codeNotEmpty
	}
	t.remove(o.path)
	return codeOK
}

// target returns the znode of a setData, setACL or check, if the client has perm.
func (s *Server) target(c *conn, path string, perm int32) (*znode, code) {
	if !validPath(path) {
		return nil, codeBadArguments
	}
	n := s.tree.get(path)
	switch {
	case n == nil:
		return nil, codeNoNode
	case !allowed(n.acl, perm, c.who):
		return nil, codeNoAuth
	}
	return n, codeOK
}

func (s *Server) setData(t *txn, c *conn, o operation) (result, code) {
	n, bad := s.target(c, o.path, permWrite)
	if bad != codeOK {
		return result{}, bad
	}
	if o.version != -1 && o.version != n.version {
		return result{}, codeBadVersion
	}
	t.set(o.path, n, o.data)
	return result{stat: n.stat()}, codeOK
}

func (s *Server) setACL(c *conn, o operation) (result, code) {
	if !validPath(o.path) {
		return result{}, codeBadArguments
	}
	acl, ok := resolve(o.acl, c.who, s.profile.answers)
	if !ok {
		return result{}, codeInvalidACL
	}
	n, bad := s.target(c, o.path, permAdmin)
	if bad != codeOK {
		return result{}, bad
	}
	if o.version != -1 && o.version != n.aversion {
		return result{}, codeBadVersion
	}
	n.acl = acl
	n.aversion++
	return result{stat: n.stat()}, codeOK
}

func (s *Server) check(c *conn, o operation) code {
	n, bad := s.target(c, o.path, permRead)
	if bad == codeOK && o.version != -1 && o.version != n.version {
		return codeBadVersion
	}
	return bad
}
