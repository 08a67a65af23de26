package conn

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Sender is a way to send requests, and has a method for each that is mostly sent alone.
// It waits for the answer as long as the session and the connection last. All paths are
// the server's.
type Sender struct {
	wire       *Wire
	on         *Conn // nil: the present one
	identified bool
	most       int // bytes that a reply may have; 0 is maxReply
}

// Sender sends on the present connection. A reply may be as large as a packet.
func (w *Wire) Sender() Sender { return Sender{wire: w, most: w.MaxPacket} }

// On sends on one connection, which may have ended; nil is the present one.
func (r Sender) On(c *Conn) Sender { r.on = c; return r }

// Unbounded is for replies larger than a packet.
func (r Sender) Unbounded() Sender { r.most = 0; return r }

// Identified sends on a connection to which the identity was given. It is not given again
// once a server has refused it: that one ended the connection, and would end each one.
// What needs it is refused then, and bare znodes that were made before are deleted without it.
func (r Sender) Identified() Sender { r.identified = true; return r }

// Send sends requests in one write.
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

// identify gives the identity to the connection, if it was not given, before it
// returns to anybody.
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

// Exchange sends requests in one write, and returns their replies as Batch.Await does.
func (r Sender) Exchange(ctx context.Context, requests ...Request) ([]Reply, error) {
	b, err := r.Send(requests...)
	if err != nil {
		return nil, err
	}
	return b.Await(ctx)
}

// ask sends one request, and reads the answer.
func ask[T any](r Sender, request Request, read func(Reply) (T, error)) (T, error) {
	request.most = r.most
	replies, err := r.Exchange(context.Background(), request)
	if err != nil {
		var none T
		return none, err
	}
	return read(replies[0])
}

// Get reads a znode.
func (r Sender) Get(path string, watch bool) (Node, error) {
	return ask(r, Get(path, watch), Reply.Node)
}

// Exists reads a znode's record.
func (r Sender) Exists(path string, watch bool) (Stat, error) {
	return ask(r, Exists(path, watch), Reply.Stat)
}

// Children lists a znode's children, and reads its record.
func (r Sender) Children(path string, watch bool) (Listing, error) {
	return ask(r, look(opGetChildren2, path, watch), Reply.listing)
}

// Ephemerals lists the session's ephemeral znodes whose paths begin with prefix.
func (r Sender) Ephemerals(prefix string) ([]string, error) {
	return ask(r, about(opGetEphemerals, prefix), Reply.strings)
}

// Sync brings the server up to date.
func (r Sender) Sync(path string) error {
	_, err := ask(r, Sync(path), Reply.nothing)
	return err
}

// Create returns the path, which the server completes if flags ask for a number.
func (r Sender) Create(path string, data []byte, flags int32, acl []jute.ACL) (string, error) {
	return ask(r, create(opCreate, path, data, flags, acl), Reply.string)
}

// Set replaces a znode's data if it has that version.
func (r Sender) Set(path string, data []byte, version int32) (Stat, error) {
	var e jute.Encoder
	encodeSet(&e, path, data, version)
	return ask(r, Request{op: opSetData, body: e.Bytes}, Reply.Stat)
}

// Delete deletes a znode if it has that version.
func (r Sender) Delete(path string, version int32) error {
	var e jute.Encoder
	encodeVersion(&e, path, version)
	_, err := ask(r, Request{op: opDelete, body: e.Bytes}, Reply.nothing)
	return err
}

// Multi sends a transaction, and returns what each of its operations has done.
func (r Sender) Multi(m Multi) ([]Result, error) {
	results, err := r.transact(m)
	if err == nil && errors.Is(refusal(results), recipes.ErrAccessDenied) && r.wire.Identified() { // it may write to the path of a line
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

// CreateParent creates a node. It is a container, which the
// server removes when its last child has gone. A server before 3.5 knows none: it
// refuses the flag as a bad argument, and gets a persistent node. If it takes that,
// nothing else was bad, and it is not asked for a container again. Sending it twice is
// harmless.
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

// CreateContainer sends the creation in a transaction. By itself it would be a request
// of 3.5, and a server before that closes the connection of whoever sends one.
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
	case errors.Is(err, BadArguments): // the path, or the flag
	case err == nil, errors.Is(err, recipes.ErrNodeExists), errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrAccessDenied):
		r.wire.containers.Store(true)
	}
	return err
}
