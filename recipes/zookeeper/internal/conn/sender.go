package conn

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Sender sends requests. It has a method for each request that is usually sent alone. Such a
// method waits for the answer until the session or the connection ends. All paths are paths at
// the server.
type Sender struct {
	wire       *Wire
	on         *Conn // nil: the current one
	identified bool
	most       int // the largest reply, in bytes; 0 means maxReply
}

// Sender returns a Sender for the current connection. A reply may be as large as a packet.
func (w *Wire) Sender() Sender { return Sender{wire: w, most: w.MaxPacket} }

// On returns a Sender for the given connection, which may have ended, or the current one for nil.
func (r Sender) On(c *Conn) Sender { r.on = c; return r }

// Unbounded returns a Sender that accepts replies larger than a packet.
func (r Sender) Unbounded() Sender { r.most = 0; return r }

// Identified returns a Sender that sends the identity first, once on each connection. A server
// that refuses the identity ends the connection. The identity is then not sent again, because
// every server would end the connection. Requests that need it are refused, and the session
// deletes its earlier bare znodes without it.
func (r Sender) Identified() Sender { r.identified = true; return r }

// Send sends the requests in one write.
func (r Sender) Send(requests ...Request) (*Batch, error) {
	if r.wire.Life.Err() != nil {
		return nil, context.Cause(r.wire.Life)
	}
	c := r.on
	if c == nil {
		c = r.wire.Current()
	}
	if r.identified && c != nil && r.wire.Identified() {
		if err := c.identify(); err != nil {
			return nil, err
		}
	}
	return c.send(requests)
}

// identify sends the identity once on the connection. Concurrent callers return after it was
// sent.
func (c *Conn) identify() error {
	c.identifying.Lock()
	defer c.identifying.Unlock()
	if c.identified {
		return nil
	}
	var e jute.Encoder
	e.Int32(0)
	e.String("digest")
	e.String(c.wire.Identity)
	_, err := c.send([]Request{{op: opAuth, body: e.Bytes}})
	c.identified = err == nil
	return err
}

// Exchange sends the requests in one write and waits for the replies: see Batch.Await.
func (r Sender) Exchange(ctx context.Context, requests ...Request) ([]Reply, error) {
	b, err := r.Send(requests...)
	if err != nil {
		return nil, err
	}
	return b.Await(ctx)
}

// ask sends one request and decodes the answer.
func ask[T any](r Sender, request Request, read func(Reply) (T, error)) (T, error) {
	request.most = r.most
	replies, err := r.Exchange(context.Background(), request)
	if err != nil {
		var none T
		return none, err
	}
	return read(replies[0])
}

// Get reads a znode's data and record.
func (r Sender) Get(path string, watch bool) (Node, error) {
	return ask(r, Get(path, watch), Reply.Node)
}

// Exists reads a znode's record.
func (r Sender) Exists(path string, watch bool) (Stat, error) {
	return ask(r, Exists(path, watch), Reply.Stat)
}

// Children lists a znode's children and reads its record.
func (r Sender) Children(path string, watch bool) (Listing, error) {
	return ask(r, readOf(opGetChildren2, path, watch), Reply.listing)
}

// Ephemerals lists the session's ephemeral znodes whose paths begin with prefix.
func (r Sender) Ephemerals(prefix string) ([]string, error) {
	return ask(r, pathOnly(opGetEphemerals, prefix), Reply.strings)
}

// Sync brings the server that the session is connected to up to date.
func (r Sender) Sync(path string) error {
	_, err := ask(r, Sync(path), Reply.nothing)
	return err
}

// Create creates a znode and returns its path. The server appends a number if flags contain
// Sequence.
func (r Sender) Create(path string, data []byte, flags int32, acl []jute.ACL) (string, error) {
	var e jute.Encoder
	encodeCreate(&e, path, data, flags, acl)
	return ask(r, Request{op: opCreate, body: e.Bytes}, Reply.string)
}

// Set replaces a znode's data, conditional on the version.
func (r Sender) Set(path string, data []byte, version int32) (Stat, error) {
	var e jute.Encoder
	encodeSet(&e, path, data, version)
	return ask(r, Request{op: opSetData, body: e.Bytes}, Reply.Stat)
}

// Delete deletes a znode, conditional on the version.
func (r Sender) Delete(path string, version int32) error {
	var e jute.Encoder
	encodeVersion(&e, path, version)
	_, err := ask(r, Request{op: opDelete, body: e.Bytes}, Reply.nothing)
	return err
}

// Multi sends a transaction and returns the results of its operations. If the server denies
// access, Multi sends the identity and then the transaction again.
func (r Sender) Multi(m Multi) ([]Result, error) {
	results, err := r.transact(m)
	if err == nil && errors.Is(refusal(results), recipes.ErrAccessDenied) && r.wire.Identified() { // the path of a wait queue may need the identity
		results, err = r.Identified().transact(m)
	}
	return results, err
}

func (r Sender) transact(m Multi) ([]Result, error) {
	results, err := ask(r, m.Request(), Reply.results)
	if err == nil && len(results) != m.n {
		err = jute.ErrMalformed
	}
	return results, err
}

// CreateParent creates a container, which the server deletes after its last child was deleted.
// A server before 3.5 has no containers and refuses the flag as a bad argument. CreateParent then
// creates a persistent znode. If that succeeds, the flag was the bad argument, and the session
// creates no more containers. Repeating CreateParent is harmless.
func (r Sender) CreateParent(path string, acl []jute.ACL) error {
	if !r.wire.noContainers.Load() {
		if err := r.CreateContainer(path, acl); !errors.Is(err, BadArguments) {
			return err
		}
	}
	_, err := r.Create(path, nil, Persistent, acl)
	if err == nil || errors.Is(err, recipes.ErrNodeExists) {
		r.wire.noContainers.Store(true)
	}
	return err
}

// CreateContainer sends the creation in a transaction. By itself, createContainer is a request
// of ZooKeeper 3.5, and an earlier server closes the connection that sends it.
func (r Sender) CreateContainer(path string, acl []jute.ACL) error {
	const container = 4
	var m Multi
	m.Create(path, nil, container, acl)
	results, err := r.Multi(m)
	if err != nil {
		return err
	}
	err = refusal(results)
	switch {
	case errors.Is(err, BadArguments): // because of the path, or of the flag
	case err == nil, errors.Is(err, recipes.ErrNodeExists), errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrAccessDenied):
		r.wire.containers.Store(true)
	}
	return err
}
