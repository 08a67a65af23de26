package conn

import (
	"cmp"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Multi is a transaction under construction. Either all of its operations happen, or none. The
// zero value is an empty transaction.
type Multi struct {
	ops jute.Encoder
	n   int
}

func (m *Multi) op(op int32) *jute.Encoder {
	m.n++
	m.ops.MultiHeader(op, -1)
	return &m.ops
}

// Check adds a check that path exists and has the version (-1: any).
func (m *Multi) Check(path string, version int32) { encodeVersion(m.op(opCheck), path, version) }

// Create adds a creation.
func (m *Multi) Create(path string, data []byte, flags int32, acl []jute.ACL) {
	encodeCreate(m.op(opCreate), path, data, flags, acl)
}

// Set adds a change of data, conditional on the version.
func (m *Multi) Set(path string, data []byte, version int32) {
	encodeSet(m.op(opSetData), path, data, version)
}

// Delete adds a deletion, conditional on the version.
func (m *Multi) Delete(path string, version int32) { encodeVersion(m.op(opDelete), path, version) }

// Request returns the complete transaction.
func (m *Multi) Request() Request {
	e := m.ops
	e.MultiEnd()
	return Request{op: opMulti, body: e.Bytes}
}

// Multi sends a transaction and returns the results of its operations. If the server denies
// access, Multi sends the identity and then the transaction again.
func (c *Conn) Multi(m Multi) ([]Result, error) {
	transact := func(r Request) ([]Result, error) {
		results, err := Ask(c, r, Reply.results)
		if err == nil && len(results) != m.n {
			err = jute.ErrMalformed
		}
		return results, err
	}
	results, err := transact(m.Request())
	if err == nil && errors.Is(refusal(results), recipes.ErrAccessDenied) && c.wire.Identified() { // the path of a wait queue may need the identity
		results, err = transact(m.Request().Identified())
	}
	return results, err
}

// CreateParent creates a container, which the server deletes after its last child was deleted.
// A server before 3.5 has no containers and refuses the flag as a bad argument. CreateParent then
// creates a persistent znode. If that succeeds, the flag was the bad argument, and the session
// creates no more containers. Repeating CreateParent is harmless.
func (w *Wire) CreateParent(path string, acl []jute.ACL) error {
	if !w.noContainers.Load() {
		if err := w.CreateContainer(path, acl); !errors.Is(err, BadArguments) {
			return err
		}
	}
	_, err := Ask(w.Current(), Create(path, nil, Persistent, acl), Reply.Path)
	if err == nil || errors.Is(err, recipes.ErrNodeExists) {
		w.noContainers.Store(true)
	}
	return err
}

// CreateContainer sends the creation in a transaction. By itself, createContainer is a request
// of ZooKeeper 3.5, and an earlier server closes the connection that sends it.
func (w *Wire) CreateContainer(path string, acl []jute.ACL) error {
	const container = 4
	var m Multi
	m.Create(path, nil, container, acl)
	results, err := w.Current().Multi(m)
	if err != nil {
		return err
	}
	err = refusal(results)
	switch {
	case errors.Is(err, BadArguments): // because of the path, or of the flag
	case err == nil, errors.Is(err, recipes.ErrNodeExists), errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrAccessDenied):
		w.containers.Store(true)
	}
	return err
}

// Result is the result of one operation of a transaction.
type Result struct {
	Refused error  // a Code, or nil; also set for the operations before the refused one
	Created string // the path that a creation returned
	Set     Stat   // the new record after a change of data
}

func (r Reply) results() ([]Result, error) {
	return answer(r, func(d *jute.Decoder) (results []Result) {
		for d.Err == nil {
			op, done, _ := d.MultiHeader()
			if done {
				break
			}
			var r Result
			switch op {
			case opCreate:
				r.Created = d.String()
			case opCreate2: // the answer to create of a container
				r.Created = d.String()
				d.Stat()
			case opSetData:
				r.Set = d.Stat()
			case opDelete, opCheck:
			case opError:
				r.Refused = Reply{code: Code(d.Int32())}.Err()
			default:
				d.Fail()
			}
			results = append(results, r)
		}
		return results
	})
}

// Refusal returns the first error among the results of a transaction.
func (r Reply) Refusal() error {
	results, err := r.results()
	return cmp.Or(err, refusal(results))
}

func refusal(results []Result) error {
	for _, r := range results {
		if r.Refused != nil {
			return r.Refused
		}
	}
	return nil
}
