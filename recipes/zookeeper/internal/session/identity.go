package session

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/jute"
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
	var e jute.Encoder
	e.Int32(0)
	e.String("digest")
	e.String(i.user + ":" + i.secret)
	return request{op: opAuth, body: e.Bytes}
}

// Identified reports whether servers take the session's identity, as far as is
// known.
func (s *Session) Identified() bool { return !s.wire.refused.Load() }

// exchangeIdentified is exchange on a connection to which the identity was given.
func (s *Session) exchangeIdentified(ctx context.Context, requests ...request) ([]reply, error) {
	b, err := s.sendIdentified(requests)
	if err != nil {
		return nil, err
	}
	return b.await(ctx, s)
}

// sendIdentified sends requests on a connection to which the identity was given.
// It is not given again once a server has refused it: that one ended the
// connection, and would end each one. What needs it is refused then, and places
// that were made before are deleted without it.
func (s *Session) sendIdentified(requests []request) (*batch, error) {
	c := s.dialer.connection()
	if c != nil && s.Identified() {
		if err := s.identify(c); err != nil {
			return nil, err
		}
	}
	return s.sendOn(c, requests)
}

// identify gives the identity to a connection, if it was not given, before it
// returns to anybody.
func (s *Session) identify(c *conn) error {
	c.identifying.Lock()
	defer c.identifying.Unlock()
	if c.identified {
		return nil
	}
	_, err := s.sendOn(c, []request{s.identity.request()})
	c.identified = err == nil
	return err
}
