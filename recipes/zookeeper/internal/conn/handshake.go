package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/sasl"
)

// connectReply is the reply to a connect request. Session id 0 means that the session to resume
// has expired.
type connectReply struct {
	version, timeout int32 // milliseconds
	id               int64
	password         []byte
	readOnly         bool // servers since 3.4
}

func readConnectReply(body []byte) (connectReply, error) {
	d := jute.Decoder{Bytes: body}
	r := connectReply{version: d.Int32(), timeout: d.Int32(), id: d.Int64(), password: d.Buffer()}
	if d.Err == nil && len(d.Bytes) > 0 {
		r.readOnly = d.Bool()
	}
	return r, d.Err
}

// check returns why the reply to a request for the session asked (0: a new one) cannot be used.
//
// The timeout may be larger than the requested one, because a server grants at least its
// minSessionTimeout. go-zookeeper would panic if it were not positive. It also cannot send a
// password that is much longer than ZooKeeper's.
func (r connectReply) check(asked int64) error {
	switch {
	case r.version == keeperRejects:
		return errors.New("ClickHouse Keeper refuses the connection: it has no leader, or is overloaded")
	case r.version != 0:
		return errors.New("this is not ZooKeeper's protocol")
	case r.readOnly:
		return errors.New("the server is read-only")
	case r.id == 0 && asked == 0:
		return errors.New("no session was created")
	case r.id != 0 && r.timeout < 1:
		return errors.New("a session cannot have this timeout")
	case r.id != 0 && len(r.password) != PasswordSize:
		return fmt.Errorf("a password has %d bytes", PasswordSize)
	}
	return nil
}

func (r connectReply) String() string {
	return fmt.Sprintf("protocol version %d, timeout %d ms, session %#x, password of %d bytes, read-only %t", r.version, r.timeout, uint64(r.id), len(r.password), r.readOnly)
}

// handshake handles the reply to the connect request, before go-zookeeper reads it. An error
// costs this connection only, and the next server is tried.
func (c *Conn) handshake(length int) error {
	if length > maxHandshake {
		return c.wrong(fmt.Errorf("handshake of %d bytes: not a ZooKeeper server?", length))
	}
	rest := make([]byte, c.rest)
	if _, err := io.ReadFull(c.in, rest); err != nil {
		return err
	}
	c.unread, c.rest = slices.Concat(c.unread, rest), 0
	body := c.unread[lengthSize:]
	r, err := readConnectReply(body)
	if err == nil {
		err = r.check(c.asked)
	}
	if err != nil {
		return c.wrong(fmt.Errorf("%w (answered: %v)", err, r))
	}
	if r.id != 0 {
		if c.asked != 0 && r.id != c.asked {
			return c.anotherSession(r)
		}
		if err := c.recognize(r); err != nil {
			return err
		}
		if err := c.accepted(r, body); err != nil {
			return err
		}
	}
	c.wire.sessionID.Store(r.id)
	c.mu.Lock()
	c.established.Store(true)
	c.mu.Unlock()
	return c.Conn.SetDeadline(time.Time{})
}

// accepted handles a reply that contains a session.
//
// The ensemble stores the timeout that the first server granted. A new leader expires the session
// by that timeout, even if a later server granted more (minSessionTimeout). A smaller one counts
// at once, even if the credentials are never accepted: the leader counts with it. go-zookeeper
// gets the smaller one too, because it determines the interval of pings.
func (c *Conn) accepted(r connectReply, body []byte) error {
	timeout, lease := time.Duration(r.timeout)*time.Millisecond, c.wire.Lease
	if c.exchange == nil && c.wire.Digest == nil {
		c.contact() // first: a smaller timeout could end the session by an earlier contact
	}
	if r.id == c.asked {
		timeout = min(timeout, lease.Timeout())
		lease.SetTimeout(timeout)
		binary.BigEndian.PutUint32(body[4:], uint32(timeout.Milliseconds()))
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	if err := c.catchUp(); err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	c.contact()
	lease.SetTimeout(timeout)
	password := slices.Clone(r.password)
	c.wire.password.Store(&password)
	return nil
}

// contact records that the leader has received the handshake.
func (c *Conn) contact() {
	if !c.began.IsZero() {
		c.wire.Lease.Accepted(c.began)
	}
}

// authenticate makes the SASL exchange and sends the digest credentials. It runs after the
// server's reply to the handshake, before go-zookeeper has read that reply. So no other request is
// sent before the server has accepted the credentials, and the contact counts only then.
// Otherwise connections whose credentials are refused would keep the session alive. The
// handshake's deadline applies. A refusal ends the session: the server would refuse again.
func (c *Conn) authenticate() error {
	if c.exchange != nil {
		if err := c.authenticateSASL(); err != nil {
			return err
		}
	}
	d := c.wire.Digest
	if d == nil {
		return nil
	}
	reply, err := c.ask(opAuth, digest(d.User+":"+d.Password))
	if err != nil {
		return fmt.Errorf("authenticate with digest: %w", err)
	}
	if reply.code == 0 {
		return nil
	}
	err = fmt.Errorf("authenticate with digest: %w (code %d)", recipes.ErrAuthFailed, reply.code)
	c.wire.Lost(err)
	return err
}

func (c *Conn) authenticateSASL() error {
	var reply Reply
	for {
		var token []byte
		var err error
		switch reply.code {
		case 0:
			token, err = c.exchange.Next(reply.body)
		case Unimplemented:
			err = sasl.ErrNotOffered
		default:
			err = fmt.Errorf("the server refused the credentials, or has another mechanism (code %d)", reply.code)
		}
		if err != nil {
			err = c.wire.dialer.sasl.Refused(c.RemoteAddr().String(), err)
			c.wire.Lost(err)
			return err
		}
		if token == nil {
			return nil
		}
		var e jute.Encoder
		e.Buffer(token)
		if reply, err = c.ask(opSASL, e.Bytes); err == nil && reply.code == 0 {
			d := jute.Decoder{Bytes: reply.body}
			reply.body, err = d.Buffer(), d.Err
		}
		if err != nil {
			return fmt.Errorf("SASL %s: %w", c.wire.SASL.Mechanism, err)
		}
	}
}

// catchUp waits until the server has applied all transactions that the session may have seen.
//
// The connect request has the id of the last one, so a server that has not applied it refuses the
// connection. But before ZooKeeper 3.9 an event does not name its transaction, and a resumed
// session does not know what the previous process has seen. A grant follows an event without a
// request, and the new holder expects to read what the previous holder wrote.
//
// A sync would not be enough: a leader answers it at once, and may not have applied what a follower
// has (see Session.Sync). The transaction is answered when the server has applied all earlier
// ones, even if it is refused because the ACL of the root does not allow the check.
func (c *Conn) catchUp() error {
	if !c.wire.unseen.Load() || c.wire.Life.Err() != nil {
		return nil
	}
	var m Multi
	m.Check("/", -1)
	reply, err := c.ask(opMulti, m.Request().body)
	if err == nil {
		err = reply.Err()
	}
	if err == nil {
		c.wire.saw(reply.zxid)
	}
	return err
}

// ask sends a request before the connection is established, and reads the reply.
func (c *Conn) ask(op int32, body []byte) (r Reply, err error) {
	const xid, maxToken = 0, 64 << 10
	var e jute.Encoder
	e.Int32(int32(8 + len(body)))
	e.Int32(xid)
	e.Int32(op)
	c.wire.Counters.request(op)
	c.wire.Counters.requestBytes.Add(int64(len(e.Bytes) + len(body)))
	var head [lengthSize + replyHeaderSize]byte
	if err = c.write(append(e.Bytes, body...)); err == nil {
		_, err = io.ReadFull(c.in, head[:])
	}
	if err != nil {
		return r, err
	}
	length := int(int32(binary.BigEndian.Uint32(head[:])))
	if length < replyHeaderSize || length > maxToken || binary.BigEndian.Uint32(head[lengthSize:]) != xid {
		return r, jute.ErrMalformed
	}
	c.wire.Counters.responseBytes.Add(int64(lengthSize + length))
	r = Reply{zxid: int64(binary.BigEndian.Uint64(head[lengthSize+4:])), code: Code(binary.BigEndian.Uint32(head[lengthSize+12:])), body: make([]byte, length-replyHeaderSize)}
	_, err = io.ReadFull(c.in, r.body)
	return r, err
}
