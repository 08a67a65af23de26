package zkserver

import (
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// read executes a request that changes nothing and appends the body of its reply. It sets
// the watch in the same step, so no change between the reply and the watch is missed.
func (s *Server) read(t task, f *jute.Encoder) code {
	o := t.call
	switch o.op {
	case OpExists:
		return s.exists(t, f)
	case OpGetData:
		return s.getData(t, f)
	case OpGetChildren, OpGetChildren2:
		return s.getChildren(t, f)
	case OpGetACL:
		return s.getACL(t, f)
	case OpCountChildren:
		return s.countChildren(t, f)
	case OpSync:
		f.String(o.path)
	case OpMultiRead:
		s.multiRead(t, f)
	case OpAddWatch:
		modes := []watchMode{watchPersistent, watchRecursive}
		if o.kind < 0 || int(o.kind) >= len(modes) {
			return codeMarshalling
		}
		s.addWatch(o.path, t.c, modes[o.kind])
		f.Int32(int32(codeOK))
	case OpSetWatches, OpSetWatches2:
		s.rearm(t.c, o.watches)
	case OpCheckWatches, OpRemoveWatches:
		return s.findWatches(t)
	case OpWhoAmI:
		whoAmI(t.c.who, f)
	case OpGetEphemerals:
		s.getEphemerals(t, f)
	default:
		return codeUnimplemented
	}
	return codeOK
}

// exists also sets a watch on a path that does not exist. It fires at the creation. Since
// 3.9, it needs the permission to read.
func (s *Server) exists(t task, f *jute.Encoder) code {
	path := t.call.path
	if strings.IndexByte(path, 0) >= 0 {
		return codeBadArguments
	}
	n := t.c.known().get(path)
	if n != nil && s.profile.answers >= Release39 && !allowed(n.acl, permRead, t.c.who) {
		return codeNoAuth
	}
	if t.call.watch {
		s.dataWatches.add(path, t.c, watchStandard)
	}
	if n == nil {
		return codeNoNode
	}
	f.Stat(n.stat())
	return codeOK
}

// readable returns the znode of a request, if the client has one of perms.
func (s *Server) readable(t task, perms int32) (*znode, code) {
	n := t.c.known().get(t.call.path)
	switch {
	case n == nil:
		return nil, codeNoNode
	case !allowed(n.acl, perms, t.c.who):
		return nil, codeNoAuth
	}
	return n, codeOK
}

func (s *Server) getData(t task, f *jute.Encoder) code {
	n, bad := s.readable(t, permRead)
	if bad != codeOK {
		return bad
	}
	if t.call.watch {
		s.dataWatches.add(t.call.path, t.c, watchStandard)
	}
	f.Buffer(n.data)
	f.Stat(n.stat())
	return codeOK
}

func (s *Server) getChildren(t task, f *jute.Encoder) code {
	n, bad := s.readable(t, permRead)
	if bad != codeOK {
		return bad
	}
	if t.call.watch {
		s.childWatches.add(t.call.path, t.c, watchStandard)
	}
	f.Strings(n.children.list...)
	if t.call.op == OpGetChildren2 {
		f.Stat(n.stat())
	}
	return codeOK
}

func (s *Server) getACL(t task, f *jute.Encoder) code {
	n, bad := s.readable(t, permRead|permAdmin)
	if bad != codeOK {
		return bad
	}
	acl := n.acl
	if !allowed(n.acl, permAdmin, t.c.who) {
		acl = maskDigests(acl)
	}
	f.ACLs(acl...)
	f.Stat(n.stat())
	return codeOK
}

func (s *Server) countChildren(t task, f *jute.Encoder) code {
	_, bad := s.readable(t, permRead)
	if bad != codeOK {
		return bad
	}
	prefix := strings.TrimSuffix(t.call.path, "/") + "/"
	count := int32(0)
	for path := range s.tree.nodes {
		if len(path) > len(prefix) && strings.HasPrefix(path, prefix) {
			count++
		}
	}
	f.Int32(count)
	return codeOK
}

func (s *Server) getEphemerals(t task, f *jute.Encoder) {
	prefix := t.call.path
	if strings.TrimSpace(prefix) == "/" {
		prefix = ""
	}
	var list []string
	for _, path := range s.tree.owned(t.c.sess.id) {
		if strings.HasPrefix(path, prefix) {
			list = append(list, path)
		}
	}
	f.Strings(list...)
}

// whoAmI lists the identities of the connection, without the secrets.
func whoAmI(who []identity, f *jute.Encoder) {
	f.Int32(int32(len(who)))
	for _, w := range who {
		user := w.id
		if w.scheme == "digest" {
			user, _, _ = strings.Cut(w.id, ":")
		}
		f.String(w.scheme)
		f.String(user)
	}
}

// The kinds of watches that checkWatches and removeWatches name. Before 3.9, the first three
// exist, and name watches of each mode.
const (
	kindChildren = 1 + iota
	kindData
	kindAny
	kindPersistent
	kindRecursive
)

func (s *Server) findWatches(t task) code {
	find := (*watchTable).has
	if t.call.op == OpRemoveWatches {
		find = (*watchTable).remove
	}
	modes := map[int32]watchMode{
		kindChildren: watchStandard, kindData: watchStandard, kindAny: watchAny,
		kindPersistent: watchPersistent, kindRecursive: watchRecursive,
	}[t.call.kind]
	if s.profile.answers < Release39 {
		modes = watchAny
		if t.call.kind < kindChildren || t.call.kind > kindAny {
			modes = 0
		}
	}
	if modes == 0 {
		return codeMarshalling
	}
	found := false
	if t.call.kind != kindChildren {
		found = find(s.dataWatches, t.call.path, t.c, modes)
	}
	if t.call.kind != kindData {
		found = find(s.childWatches, t.call.path, t.c, modes) || found
	}
	if !found {
		return codeNoWatcher
	}
	return codeOK
}
