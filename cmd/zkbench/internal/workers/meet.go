package workers

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const leaveTimeout = 10 * time.Second

// Begin returns when all workers have called it.
func (c *Crew) Begin(ctx context.Context) (err error) {
	c.running, err = c.enter(ctx, c.barrier, "begin a trial")
	return err
}

// End returns when all workers have called it, after Begin.
func (c *Crew) End(ctx context.Context) error { return c.exit(ctx, c.running, "end a trial") }

// Give gives a record to worker 1. For worker 1 it returns the records of all workers, in the
// order of their numbers; for the others it returns nil.
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
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	err = c.membership.Update(ctx, data)
	if errors.Is(err, recipes.ErrTooLarge) {
		return fmt.Errorf("the record of this worker for trial %d (%s, %d bytes compressed) does not fit into a znode; give a shorter -duration, a longer -hold or fewer -contenders: %w",
			r.Trial, english.Count(len(r.Grants), "grant"), len(part), err)
	}
	return c.cause(ctx, err)
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

// Finish ends the run: it waits until all workers have called it, and then leaves, so that no
// worker reports another as missing. It waits at most ten seconds, because all records have
// been given by then.
func (c *Crew) Finish(ctx context.Context) {
	c.awaitLeavers(ctx)
	c.Close()
}

// awaitLeavers waits until all workers are about to leave. So no worker reports another as missing
// that leaves for the same reason.
func (c *Crew) awaitLeavers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_, _ = c.given.Enter(ctx, nil)
}

// Close makes this worker leave. Workers that are not in Finish then report it as missing.
// Close may be called again.
func (c *Crew) Close() {
	c.stop(nil)
	<-c.done
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = c.membership.Leave(ctx) // if it fails, the end of the session removes the member
}

func (c *Crew) enter(ctx context.Context, b recipes.DoubleBarrier, what string) (recipes.Passage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Patience, c.late(what))
	defer cancel()
	passage, err := b.Enter(ctx, []byte(c.cfg.About))
	return passage, c.cause(ctx, err)
}

func (c *Crew) exit(ctx context.Context, p recipes.Passage, what string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Patience, c.late(what))
	defer cancel()
	return c.cause(ctx, p.Leave(ctx))
}

// late is the error if a worker does not come within Config.Patience, although no session has
// ended.
func (c *Crew) late(what string) error {
	return fmt.Errorf("worker %d waited %v for the others to %s, but not all of them came, although their sessions are alive", c.number, c.cfg.Patience, what)
}

// cause replaces err by the cause of ctx, or of the crew's context, if one of them is done. A
// nil err stays nil.
func (c *Crew) cause(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(context.Cause(ctx), context.Cause(c.ctx), err)
}

// part is a worker's record, gob-encoded and compressed. Record is JSON, without grants.
// Grants has a column for each figure of a grant: the differences to the previous token and
// the previous time, the wait from joining to the grant, and the hold. They differ little from
// one grant to the next, so they compress well.
type part struct {
	Record []byte
	Grants [4][]int64
}

func encode(r record.Record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	p := part{Record: text}
	var last load.Grant
	for _, g := range r.Grants {
		for i, n := range []int64{int64(g.Token - last.Token), int64(g.Granted - last.Granted), int64(g.Granted - g.Joined), int64(g.Left - g.Granted)} {
			p.Grants[i] = append(p.Grants[i], n)
		}
		last = g
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(gob.NewEncoder(w).Encode(p), w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxPart limits the decompressed size of a part.
const maxPart = 16 << 20

func decode(data []byte) (r record.Record, err error) {
	var p part
	if err := gob.NewDecoder(io.LimitReader(flate.NewReader(bytes.NewReader(data)), maxPart)).Decode(&p); err != nil {
		return r, fmt.Errorf("a part cannot be read: %w", err)
	}
	if err := json.Unmarshal(p.Record, &r); err != nil {
		return r, err
	}
	var g load.Grant
	for i, token := range p.Grants[0] {
		if i >= min(len(p.Grants[1]), len(p.Grants[2]), len(p.Grants[3])) {
			return r, errors.New("a part cannot be read: its grants are cut short")
		}
		g.Token += recipes.Token(token)
		g.Granted += time.Duration(p.Grants[1][i])
		g.Joined, g.Left = g.Granted-time.Duration(p.Grants[2][i]), g.Granted+time.Duration(p.Grants[3][i])
		r.Grants = append(r.Grants, g)
	}
	return r, nil
}
