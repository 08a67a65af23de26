package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// delivery is the host's half of a received element.
type delivery struct {
	*remoteGrant
	element recipes.Element
	attempt int

	once   sync.Once
	acked  bool          // by Ack, not Return
	result error         // set before done is closed
	done   chan struct{} // closed at the end of the first Ack or Return
}

func (d *delivery) Element() recipes.Element { return d.element }
func (d *delivery) Attempt() int             { return d.attempt }

func (d *delivery) Ack(ctx context.Context) error    { return d.conclude(ctx, true) }
func (d *delivery) Return(ctx context.Context) error { return d.conclude(ctx, false) }

// conclude ends the delivery on the first call, and waits for the end. A goroutine of the
// session makes the call to the plugin, which therefore continues when ctx ends.
func (d *delivery) conclude(ctx context.Context, ack bool) error {
	d.once.Do(func() {
		d.acked = ack
		work := func() { d.finish(d.call(ack)) }
		if reason := d.endLocally(); reason != nil {
			d.finish(reason)
		} else if !d.s.spawn(work) {
			work() // the session is closed, so the call fails at once
		}
	})
	if ack != d.acked && errors.Is(d.Err(), recipes.ErrReleased) {
		return d.failed(recipes.ErrReleased)
	}
	if err := outcome(ctx, d.done, &d.result); err != nil {
		return d.failed(err)
	}
	return nil
}

func (d *delivery) finish(err error) {
	d.result = err
	close(d.done)
}

// endLocally ends the grant in this process. If it has already ended, endLocally returns the
// reason.
func (d *delivery) endLocally() error {
	if err := d.Err(); err != nil {
		return err
	}
	d.lose(recipes.ErrReleased)
	if err := d.Err(); !errors.Is(err, recipes.ErrReleased) {
		return err
	}
	d.s.unhold(d.id)
	return nil
}

func (d *delivery) call(ack bool) error {
	calls := 0
	err := d.s.persist(d.s.over, way{counted: true}, func(ctx context.Context) error {
		calls++
		if ack {
			_, err := d.s.queues.AcknowledgeElement(ctx, &pb.AcknowledgeElementRequest{Session: d.s.handle, RequestId: d.id})
			return err
		}
		_, err := d.s.grants.Release(ctx, &pb.ReleaseRequest{Session: d.s.handle, RequestId: d.id})
		return err
	})
	if calls > 1 && !ack {
		err = forgotten(err)
	}
	if err == nil || errors.Is(err, recipes.ErrNotHeld) {
		d.s.forget(d.id)
	}
	if errors.Is(err, recipes.ErrSessionLost) || calls > 1 && unexplained(err) { // an earlier call may have succeeded
		return fmt.Errorf("%w: %w: %w", recipes.ErrNotHeld, recipes.ErrUnknownOutcome, err)
	}
	return err
}

func (d *delivery) failed(err error) error {
	what := "return"
	if d.acked {
		what = "acknowledge"
	}
	return fmt.Errorf("%s %s: %w", what, d.element.ID, err)
}
