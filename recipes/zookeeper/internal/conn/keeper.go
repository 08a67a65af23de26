package conn

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// ClickHouse Keeper speaks ZooKeeper's protocol, and differs where locks are concerned. It is
// recognized by the reply to the handshake, so that costs no request. docs/servers.md says what
// holds there, and from which sources that is known: no Keeper was tested.
//
//   - It closes the connection that sends a request that its version does not know. So a session
//     sends only those that every version knows: see keeperKnows.
//   - It ignores the session in a handshake and opens another one: see Conn.anotherSession.
//   - It answers requests whose outcome it does not know: see undecided.
//   - It confirms closeSession only by the end of the connection: see Conn.sawEnd.

// keeperRejects is the protocol version with which ClickHouse Keeper refuses a connection. The
// rest of that answer looks like a session.
const keeperRejects = 42

// IsKeeper reports whether a session with this id and password is one of ClickHouse Keeper. Either
// is enough, and no ZooKeeper's session has either:
//
//   - Keeper counts its ids from 1. ZooKeeper (SessionTrackerImpl.initializeNextSessionId) puts the
//     server's number into the top byte, then 40 bits of the milliseconds of its clock, and counts in
//     the lowest 16 bits. So an id below mostCounted has the server number 0, which the documentation
//     does not allow, and a server that began within 256 ms after its machine.
//   - Keeper sends 16 zero bytes. ZooKeeper's password is the output of java.util.Random, which never
//     returns four zeros in succession.
func IsKeeper(id int64, password []byte) bool {
	return id > 0 && id < mostCounted || !slices.ContainsFunc(password, func(b byte) bool { return b != 0 })
}

const mostCounted = 1 << 24

// keeperKnows holds the requests that every version of Keeper knows. The others were added one by
// one, each behind a setting.
var keeperKnows = []int32{
	opCreate, opDelete, opExists, opGetData, opSetData, opSync, opPing, opGetChildren2, opMulti, opAuth, opClose,
}

// allows returns an error if the servers may not know one of the requests. Nothing may be sent then:
// Keeper would close the connection, and with it the session.
func (w *Wire) allows(requests []Request) error {
	if !w.Keeper() {
		return nil
	}
	for _, r := range requests {
		if !slices.Contains(keeperKnows, r.op) {
			return fmt.Errorf("%w: ClickHouse Keeper may not know the request %s", recipes.ErrUnsupported, operations[r.op].name)
		}
	}
	return nil
}

// Keeper reports whether the session is one of ClickHouse Keeper. It is false before the first
// handshake.
func (w *Wire) Keeper() bool { return w.keeper.Load() }

// Server returns the kind of the session's servers, "" before the first handshake.
func (w *Wire) Server() recipes.ServerKind {
	switch {
	case w.ID() == 0:
		return ""
	case w.Keeper():
		return recipes.ServerKeeper
	}
	return recipes.ServerZooKeeper
}

// recognize records the kind of the server that has accepted a session. It returns why the session
// cannot use that server, which ends the session: another server is of the same kind.
func (c *Conn) recognize(r connectReply) error {
	keeper := IsKeeper(r.id, r.password)
	c.wire.keeper.Store(keeper)
	var err error
	switch {
	case !keeper:
	case c.wire.ZooKeeperOnly:
		err = fmt.Errorf("%w: the server is ClickHouse Keeper, and SessionConfig.ZooKeeperOnly (zookeeper_only) is set", recipes.ErrUnsupported)
	case c.exchange != nil:
		err = fmt.Errorf("%w: ClickHouse Keeper has no SASL", recipes.ErrAuthFailed)
	}
	if err != nil {
		c.abandon()
		c.wire.Lost(err)
	}
	return err
}

// anotherSession ends the session because the server has opened another one instead of continuing
// it. The handshake is no contact of the session: its leader may be about to expire it.
func (c *Conn) anotherSession(r connectReply) error {
	err := fmt.Errorf("%w: it opened the session %#x instead of continuing %#x", recipes.ErrNotContinued, uint64(r.id), uint64(c.asked))
	c.abandon()
	c.wire.Lost(err)
	return err
}

// abandon closes, at the server, the session that the handshake has opened and that nothing uses.
func (c *Conn) abandon() {
	c.wire.Counters.request(opClose)
	_ = c.write(closeRequest()) // otherwise the server keeps the session for its timeout
}

// undecided reports whether an error that Keeper puts into the header of a reply leaves the outcome
// of the request unknown: it was on its way through the log when the server lost the leader
// or began to stop. The connection then ends, so each request on it has that outcome.
func (c *Conn) undecided(code Code) bool {
	const connectionLoss, operationTimeout, expired = -4, -7, -112
	return c.wire.Keeper() && (code == connectionLoss || code == operationTimeout || code == expired)
}

// sawEnd records that Keeper has closed the session, if err is the end of a connection on which
// closeSession was sent. The server ends the connection in that way too if it stops, and the session
// then lasts until its timeout.
func (c *Conn) sawEnd(err error) {
	if !c.wire.Keeper() || !errors.Is(err, io.EOF) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.pending, func(s sent) bool { return s.op == opClose }) {
		c.wire.setClosed()
	}
}
