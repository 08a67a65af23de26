package workers

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const leaveTimeout = 10 * time.Second

func (m message) marshal() ([]byte, error) { return json.Marshal(m) }

// Begin returns when all workers have called it.
func (c *Crew) Begin(ctx context.Context) (err error) {
	c.running, err = c.enter(ctx, c.barrier, "begin a trial")
	return err
}

// End returns when all workers have called it, after Begin.
func (c *Crew) End(ctx context.Context) error { return c.exit(ctx, c.running, "end a trial") }

// Give gives a record to the worker with number 1. That one gets all of them, in
// the order of the workers' numbers; others get nil.
func (c *Crew) Give(ctx context.Context, r record.Record) ([]record.Record, error) {
	if err := c.put(ctx, r); err != nil {
		return nil, err
	}
	passage, err := c.enter(ctx, c.given, "give what they measured")
	if err != nil {
		return nil, err
	}
	var all []record.Record
	if c.number == 1 {
		if all, err = c.collect(ctx, r.Trial); err != nil {
			return nil, err
		}
	}
	return all, c.exit(ctx, passage, "give what they measured")
}

func (c *Crew) put(ctx context.Context, r record.Record) error {
	part, err := encode(r)
	if err != nil {
		return err
	}
	m := c.hello
	m.Trial, m.Part = r.Trial, part
	data, err := m.marshal()
	if err != nil {
		return err
	}
	err = c.membership.Update(ctx, data)
	if errors.Is(err, recipes.ErrTooLarge) {
		return fmt.Errorf("what this worker measured in trial %d (%d grants, %d bytes compressed) does not fit into a znode; give a shorter -duration, a longer -hold or fewer -contenders: %w",
			r.Trial, len(r.Grants), len(part), err)
	}
	if err != nil {
		return c.cause(ctx, err)
	}
	return nil
}

func (c *Crew) collect(ctx context.Context, trial int) ([]record.Record, error) {
	members, err := c.group.Members(ctx)
	if err != nil {
		return nil, c.cause(ctx, err)
	}
	crew, err := crewOf(members, c.cfg.Size)
	if err != nil {
		return nil, err
	}
	if len(crew) < c.cfg.Size {
		return nil, c.absent("the run ends", crew)
	}
	var all []record.Record
	for number := 1; number <= c.cfg.Size; number++ {
		m := crew[number]
		if m.Trial != trial {
			return nil, fmt.Errorf("%s has given its trial %d instead of %d", m.describe(number), m.Trial, trial)
		}
		r, err := decode(m.Part)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.describe(number), err)
		}
		all = append(all, r)
	}
	return all, nil
}

// Finish returns when all workers have called it, and has this one leave. It is for
// the end of a run: from then on nobody misses anybody. Nobody waits for long, since
// whoever has not come by then has nothing to give any more.
func (c *Crew) Finish(ctx context.Context) {
	c.part(ctx)
	c.Close()
}

// part waits until all workers are about to leave, so that none finds another
// missing that has left for the same reason.
func (c *Crew) part(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_, _ = c.given.Enter(ctx, nil)
}

// Close has this worker leave. The others, unless they are at Finish, will find it
// missing. It may be called again.
func (c *Crew) Close() { c.leave() }

func (c *Crew) leave() {
	c.stop(nil)
	<-c.done
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = c.membership.Leave(ctx) // its session's end will do it
}

func (c *Crew) enter(ctx context.Context, b recipes.DoubleBarrier, what string) (recipes.Passage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Patience, c.late(what))
	defer cancel()
	passage, err := b.Enter(ctx, []byte(c.cfg.About))
	if err != nil {
		return nil, c.cause(ctx, err)
	}
	return passage, nil
}

func (c *Crew) exit(ctx context.Context, p recipes.Passage, what string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Patience, c.late(what))
	defer cancel()
	if err := p.Leave(ctx); err != nil {
		return c.cause(ctx, err)
	}
	return nil
}

// late is about workers that live and do not come.
func (c *Crew) late(what string) error {
	return fmt.Errorf("worker %d waited %v for the others to %s, and not all of them came, though their sessions live", c.number, c.cfg.Patience, what)
}

// cause is why ctx ended if it did, and err otherwise.
func (c *Crew) cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	return err
}

// A part is a record with its grants, compressed: the length of the record's JSON,
// that JSON, and the grants, whose tokens are differences to the one before. All
// numbers are varints.

func encode(r record.Record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	raw := append(binary.AppendUvarint(nil, uint64(len(text))), text...)
	raw = binary.AppendUvarint(raw, uint64(len(r.Grants)))
	last := recipes.Token(0)
	for _, g := range r.Grants {
		for _, n := range []int64{int64(g.Token - last), int64(g.Joined), int64(g.Granted), int64(g.Left)} {
			raw = binary.AppendVarint(raw, n)
		}
		last = g.Token
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(raw)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// grantBytes is at least what a grant has, uncompressed.
const grantBytes = 4

// maxPart bounds what a part is decompressed to.
const maxPart = 16 << 20

func decode(part []byte) (record.Record, error) {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(part)), maxPart))
	if err != nil {
		return record.Record{}, fmt.Errorf("a part cannot be read: %w", err)
	}
	b := bytes.NewBuffer(raw)
	length, err := binary.ReadUvarint(b)
	if err != nil || length > uint64(b.Len()) {
		return record.Record{}, errors.New("a part cannot be read: it is cut short")
	}
	var r record.Record
	if err := json.Unmarshal(b.Next(int(length)), &r); err != nil {
		return record.Record{}, err
	}
	n, err := binary.ReadUvarint(b)
	if err != nil || n > uint64(b.Len()/grantBytes) {
		return record.Record{}, errors.New("a part cannot be read: its grants are cut short")
	}
	last := recipes.Token(0)
	for range n {
		var v [4]int64
		for i := range v {
			if v[i], err = binary.ReadVarint(b); err != nil {
				return record.Record{}, fmt.Errorf("a part cannot be read: grants: %w", err)
			}
		}
		last += recipes.Token(v[0])
		r.Grants = append(r.Grants, load.Grant{
			Token: last, Joined: time.Duration(v[1]), Granted: time.Duration(v[2]), Left: time.Duration(v[3]),
		})
	}
	return r, nil
}
