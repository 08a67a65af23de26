package conn

import (
	"cmp"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// Multi is a transaction under construction: all of its operations happen, or none. Its
// zero value is empty.
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

// Check adds a check that path exists with that version (-1: any).
func (m *Multi) Check(path string, version int32) { encodeVersion(m.op(opCheck), path, version) }

// Create adds a creation.
func (m *Multi) Create(path string, data []byte, flags int32, acl []jute.ACL) {
	encodeCreate(m.op(opCreate), path, data, flags, acl)
}

// Set adds a change of data, if the version matches.
func (m *Multi) Set(path string, data []byte, version int32) {
	encodeSet(m.op(opSetData), path, data, version)
}

// Delete adds a deletion, if the version matches.
func (m *Multi) Delete(path string, version int32) { encodeVersion(m.op(opDelete), path, version) }

// Request is the transaction, complete.
func (m *Multi) Request() Request {
	e := m.ops
	e.MultiEnd()
	return Request{op: opMulti, body: e.Bytes}
}

// Result is what one operation of a transaction has done.
type Result struct {
	Refused error  // a Code, or nil: also for those before the one that was refused
	Created string // the path of a creation
	Set     Stat   // the new record of what was set
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
			case opCreate2: // of a container, though create was asked for
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

// Refusal is the answer to a transaction: the first error among its results.
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
