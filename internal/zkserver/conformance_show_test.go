package zkserver_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// next shows one frame. It returns false if the connection has ended.
func (p *player) next(c *rawClient) bool {
	frame, err := c.frame()
	if errors.Is(err, errClosed) {
		p.say("%s: closed", c.name)
		c.pending = nil
		return false
	}
	check(err)
	r := &reader{frame}
	xid, zxid, code := r.i32(), r.i64(), r.i32()
	if xid == -1 {
		p.event(c, zxid, r)
		return true
	}
	if len(c.pending) == 0 || c.pending[0].xid != xid {
		panic(fmt.Sprintf("reply with xid %d; waiting for %v", xid, c.pending))
	}
	op := c.pending[0].op
	c.pending = c.pending[1:]
	p.last = max(p.last, zxid)
	c.refused = code == codeUnimplemented
	body := ""
	if code == 0 {
		body = p.reply(op, r)
	}
	if len(r.b) > 0 {
		body += fmt.Sprintf(" rest=%x", r.b)
	}
	p.say("%s: %s zxid=%s%s", c.name, codeName(code), p.zxid(zxid), body)
	return true
}

var eventNames = map[int32]string{1: "created", 2: "deleted", 3: "changed", 4: "children"}

func (p *player) event(c *rawClient, zxid int64, r *reader) {
	event, state, path := r.i32(), r.i32(), r.str()
	p.say("%s: event %s %s state=%d zxid=%s", c.name, eventNames[event], p.path(path), state, p.zxid(zxid))
}

func (p *player) path(path string) string {
	return fmt.Sprintf("%+q", strings.ReplaceAll(path, p.root, "$"))
}

// zxid shows a transaction id relative to the beginning of the script.
func (p *player) zxid(z int64) string {
	switch {
	case z <= 0:
		return fmt.Sprint(z)
	case z < p.base:
		return "earlier"
	}
	return fmt.Sprintf("+%d", z-p.base)
}

const codeUnimplemented = -6

var codeNames = map[int32]string{
	0: "ok", -1: "SystemError", -2: "RuntimeInconsistency", -5: "MarshallingError", -6: "Unimplemented",
	-8: "BadArguments", -101: "NoNode", -102: "NoAuth", -103: "BadVersion",
	-108: "NoChildrenForEphemerals", -110: "NodeExists", -111: "NotEmpty", -112: "SessionExpired",
	-114: "InvalidACL", -115: "AuthFailed", -121: "NoWatcher",
}

func codeName(code int32) string {
	if name, ok := codeNames[code]; ok {
		return name
	}
	return fmt.Sprint(code)
}

// reply shows the body of a successful reply.
func (p *player) reply(op int32, r *reader) string {
	if len(r.b) == 0 {
		return ""
	}
	switch op {
	case 1, 9:
		return " path=" + p.path(r.str())
	case 15, 19, 21:
		return " path=" + p.path(r.str()) + p.stat(r)
	case 3, 5, 7, 13:
		return p.stat(r)
	case 4:
		return " data=" + data(r.blob()) + p.stat(r)
	case 6:
		return p.acl(r) + p.stat(r)
	case 8:
		return p.children(r)
	case 12:
		return p.children(r) + p.stat(r)
	case 14, 22:
		return p.multi(r)
	case 103:
		return p.children(r)
	case 104:
		return fmt.Sprintf(" n=%d", r.i32())
	}
	return ""
}

func (p *player) multi(r *reader) string {
	var b strings.Builder
	for {
		op, done, code := r.i32(), r.bool(), r.i32()
		if done {
			fmt.Fprintf(&b, "\n        end type=%d err=%d", op, code)
			return b.String()
		}
		fmt.Fprintf(&b, "\n        type=%d err=%d", op, code)
		switch op {
		case -1:
			fmt.Fprintf(&b, " %s", codeName(r.i32()))
		case 2, 13:
		default:
			b.WriteString(p.reply(op, r))
		}
	}
}

func data(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 64:
		return fmt.Sprintf("%d bytes", len(b))
	}
	return fmt.Sprintf("%q", b)
}

// children are sorted, because their order is unspecified.
func (p *player) children(r *reader) string {
	list := r.strs()
	slices.Sort(list)
	for i := range list {
		list[i] = p.path(list[i])
	}
	return fmt.Sprintf(" children=%v", list)
}

func (p *player) acl(r *reader) string {
	s := " acl="
	for n := r.i32(); n > 0; n-- {
		perms := r.i32()
		s += fmt.Sprintf("[%d %s %s]", perms, r.str(), r.str())
	}
	return s
}

func (p *player) stat(r *reader) string {
	czxid, mzxid := r.i64(), r.i64()
	ctime, mtime := r.i64(), r.i64()
	version, cversion, aversion := r.i32(), r.i32(), r.i32()
	owner := r.i64()
	length, kids := r.i32(), r.i32()
	pzxid := r.i64()
	return fmt.Sprintf(" czxid=%s mzxid=%s ctime=%s mtime=%s version=%d cversion=%d aversion=%d owner=%s length=%d children=%d pzxid=%s",
		p.zxid(czxid), p.zxid(mzxid), p.time(ctime), p.time(mtime), version, cversion, aversion,
		p.owner(owner), length, kids, p.zxid(pzxid))
}

// time shows only whether a time is plausible.
func (p *player) time(ms int64) string {
	t := time.UnixMilli(ms)
	switch {
	case ms == 0:
		return "0"
	case t.Before(p.start.Add(-time.Second)) || t.After(time.Now().Add(time.Second)): // the subject of the test: the server's clock
		return "implausible:" + t.String()
	}
	return "now"
}

func (p *player) owner(id int64) string {
	if name, ok := p.names[id]; ok {
		return name
	}
	if id == 0 {
		return "0"
	}
	return fmt.Sprintf("%#x", uint64(id))
}
