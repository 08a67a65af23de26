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
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	err = c.membership.Update(ctx, data)
	if errors.Is(err, recipes.ErrTooLarge) {
		return fmt.Errorf("what this worker measured in trial %d (%d grants, %d bytes compressed) does not fit into a znode; give a shorter -duration, a longer -hold or fewer -contenders: %w",
			r.Trial, len(r.Grants), len(part), err)
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
func (c *Crew) Close() {
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
	return passage, c.cause(ctx, err)
}

func (c *Crew) exit(ctx context.Context, p recipes.Passage, what string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Patience, c.late(what))
	defer cancel()
	return c.cause(ctx, p.Leave(ctx))
}

// late is about workers that live and do not come.
func (c *Crew) late(what string) error {
	return fmt.Errorf("worker %d waited %v for the others to %s, and not all of them came, though their sessions live", c.number, c.cfg.Patience, what)
}

// cause is why ctx ended if err is one and it did, and err otherwise.
func (c *Crew) cause(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(context.Cause(ctx), context.Cause(c.ctx), err)
}

// part is a record as it is given, by gob, compressed. Record is JSON, which has no grants.
// Those are apart by what changes little from one to the next: the difference to the token
// before, to the grant before, and the times from there.
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

// maxPart bounds what a part is decompressed to.
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
