package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// requests are ZooKeeper's requests, one method each, with the paths of the server. They
// are sent past go-zookeeper (see exchange): what a session holds in memory is what it
// sends and receives, and nothing between.
type requests struct {
	s     *Session
	bound bool // to one connection, which may have ended, or nil
	on    *conn

	identified bool // the session's identity is given before
}

// ask sends one request and returns the body of its reply. It waits for as long as the
// session and the connection last; see call.
func (r requests) ask(op int32, e jute.Encoder) (*jute.Decoder, error) {
	c := r.on
	if !r.bound {
		c = r.s.dialer.connection()
	}
	if r.identified && c != nil {
		if err := r.s.identify(c); err != nil {
			return nil, err
		}
	}
	replies, err := r.s.exchangeOn(context.Background(), c, request{op: op, body: e.Bytes, most: r.s.cfg.MaxPacket})
	if err == nil {
		err = replies[0].err()
	}
	if err != nil {
		return nil, err
	}
	return &jute.Decoder{Bytes: replies[0].body}, nil
}

func (r requests) get(path string, watch bool) (Node, error) {
	d, err := r.look(opGetData, path, watch)
	if err != nil {
		return Node{}, err
	}
	node := Node{Data: d.Buffer(), Stat: Stat(d.Stat())}
	return node, d.Err
}

func (r requests) exists(path string, watch bool) (Stat, error) {
	d, err := r.look(opExists, path, watch)
	if err != nil {
		return Stat{}, err
	}
	stat := Stat(d.Stat())
	return stat, d.Err
}

func (r requests) children(path string, watch bool) ([]string, Stat, error) {
	d, err := r.look(opGetChildren2, path, watch)
	if err != nil {
		return nil, Stat{}, err
	}
	names, stat := d.Strings(), Stat(d.Stat())
	if names == nil { // the null vector, which no server sends
		d.Fail()
	}
	return names, stat, d.Err
}

// look asks about a path, with or without a watch.
func (r requests) look(op int32, path string, watch bool) (*jute.Decoder, error) {
	var e jute.Encoder
	e.String(path)
	e.Bool(watch)
	return r.ask(op, e)
}

func (r requests) sync(path string) error {
	var e jute.Encoder
	e.String(path)
	_, err := r.ask(opSync, e)
	return err
}

// create returns the path, which the server completes if flags ask for a number.
func (r requests) create(path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	var e jute.Encoder
	encodeCreate(&e, path, data, flags, acl)
	d, err := r.ask(opCreate, e)
	if err != nil {
		return "", err
	}
	created := d.String()
	return created, d.Err
}

func encodeCreate(e *jute.Encoder, path string, data []byte, flags int32, acl []zk.ACL) {
	e.String(path)
	e.Buffer(notNull(data))
	e.ACLs(juteACLs(acl)...)
	e.Int32(flags)
}

func (r requests) set(path string, data []byte, version int32) (Stat, error) {
	var e jute.Encoder
	encodeSet(&e, path, data, version)
	d, err := r.ask(opSetData, e)
	if err != nil {
		return Stat{}, err
	}
	stat := Stat(d.Stat())
	return stat, d.Err
}

func encodeSet(e *jute.Encoder, path string, data []byte, version int32) {
	e.String(path)
	e.Buffer(notNull(data))
	e.Int32(version)
}

func (r requests) delete(path string, version int32) error {
	var e jute.Encoder
	encodeVersion(&e, path, version)
	_, err := r.ask(opDelete, e)
	return err
}

// encodeVersion encodes a deletion, and a check.
func encodeVersion(e *jute.Encoder, path string, version int32) {
	e.String(path)
	e.Int32(version)
}

// multi sends a transaction of n operations, which are encoded in e, and returns what
// each of them has done.
func (r requests) multi(n int, e jute.Encoder) ([]result, error) {
	e.MultiEnd()
	results, err := r.transact(n, e)
	if err == nil && errors.Is(refusal(results), zk.ErrNoAuth) && r.s.Identified() { // it may write to the path of a line
		r.identified = true
		results, err = r.transact(n, e)
	}
	return results, err
}

func (r requests) transact(n int, e jute.Encoder) ([]result, error) {
	d, err := r.ask(opMulti, e)
	if err != nil {
		return nil, err
	}
	results, err := decodeResults(d)
	if len(results) != n {
		err = jute.ErrMalformed
	}
	return results, err
}

func decodeResults(d *jute.Decoder) (results []result, err error) {
	for d.Err == nil {
		op, done, _ := d.MultiHeader()
		if done {
			break
		}
		var r result
		switch op {
		case opCreate:
			r.created = d.String()
		case opCreate2: // of a container, though create was asked for
			r.created = d.String()
			d.Stat()
		case opSetData:
			r.set = Stat(d.Stat())
		case opDelete, opCheck:
		case opError:
			r.refused = reply{code: d.Int32()}.err()
		default:
			d.Fail()
		}
		results = append(results, r)
	}
	return results, d.Err
}

// refusal is the first error among the results of a transaction.
func refusal(results []result) error {
	for _, r := range results {
		if r.refused != nil {
			return r.refused
		}
	}
	return nil
}

// result is what one operation of a transaction has done.
type result struct {
	refused error  // as reply.err has it: nil for those before the one that was refused
	created string // the path of a creation, at the server
	set     Stat   // the new record of what was set
}
