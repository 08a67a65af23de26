package session

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/go-zookeeper/zk"
)

// identity is a digest user of this session's own, with a password that nobody
// else knows. What gives write permission to it alone, only this session writes,
// and whoever sees a change knows who made it. (The server's superuser may write
// too, and anybody where the server was told to skip ACLs.)
//
// It is given on each connection before it is first needed.
type identity struct {
	once   sync.Once
	user   string
	secret string
}

func (i *identity) prepare() {
	i.once.Do(func() { i.user, i.secret = "zkrecipes-"+rand.Text(), rand.Text() })
}

// acl is that of the session's znodes with writing left to the identity. Others
// keep reading, and deleting, which the parent's ACL is about.
func (i *identity) acl(others []zk.ACL) []zk.ACL {
	i.prepare()
	acl := make([]zk.ACL, 0, len(others)+1)
	for _, a := range others {
		if a.Perms &^= zk.PermWrite | zk.PermAdmin; a.Perms != 0 {
			acl = append(acl, a)
		}
	}
	return append(acl, zk.DigestACL(zk.PermAll, i.user, i.secret)...)
}

// request gives the identity to a connection.
func (i *identity) request() request {
	i.prepare()
	var e encoder
	e.i32(0)
	e.str("digest")
	e.str(i.user + ":" + i.secret)
	return request{op: opAuth, body: e.b}
}

// Identified reports whether servers take the session's identity, as far as is
// known.
func (s *Session) Identified() bool { return !s.wire.refused.Load() }

// exchangeIdentified is exchange on a connection to which the identity was given.
func (s *Session) exchangeIdentified(ctx context.Context, requests ...request) ([]reply, error) {
	c := s.dialer.connection()
	if c == nil || !c.identify() {
		return s.exchangeOn(ctx, c, requests)
	}
	replies, err := s.exchangeOn(ctx, c, append([]request{s.identity.request()}, requests...))
	if err != nil {
		return nil, err
	}
	return replies[1:], nil
}

// identify notes on c that the identity is being given, and reports whether it
// was not before.
func (c *conn) identify() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.identified
	c.identified = true
	return !was
}
