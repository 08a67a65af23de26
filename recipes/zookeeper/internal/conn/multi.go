package conn

import (
	"cmp"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// Multi is a transaction under construction. Either all of its operations happen, or none. The
// zero value is an empty transaction.
type Multi struct {
	ops jute.Encoder
	n   int
}

// op begins an operation.
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
