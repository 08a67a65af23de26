package twophase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	gopath "path"

	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

func (t *twoPhase) Begin(ctx context.Context, payload []byte, sites ...string) error {
	_, err := t.BeginAs(ctx, payload, sites...)
	return err
}

// BeginAs is Begin, and returns the transaction's ID, which no other transaction has.
func (t *twoPhase) BeginAs(ctx context.Context, payload []byte, sites ...string) (id string, err error) {
	if err := recipes.ValidateSites(sites); err != nil {
		return "", t.failed(err)
	}
	p := protocol{ID: uuid.NewString(), Variant: t.variant, Sites: sites}
	record, err := json.Marshal(p)
	if err != nil {
		return "", t.failed(fmt.Errorf("%w: %v", recipes.ErrInvalid, err))
	}
	var begin session.Txn
	begin.Create(t.Path(), payload, false)
	begin.Create(t.Child(protocolName), record, false)
	begin.Create(t.Child(idPrefix+p.ID), nil, false)
	if t.variant != recipes.OwnNodes {
		for _, s := range sites {
			begin.Create(t.Child(sitePrefix+s), nil, false) // "leaves the content undefined"
		}
	}
	if t.variant != recipes.AllWatch {
		begin.Create(t.Child(coordinatorName), nil, true)
	}
	if err := t.begin(ctx, t.Path()+"-begun-"+p.ID, begin); err != nil {
		return "", err
	}
	return p.ID, nil
}

// begin commits the beginning exactly once. It also creates a marker beside the transaction. The
// marker shows a repeated attempt that an earlier one was committed, even if the transaction
// was completed and deleted since. begin deletes the marker when the outcome is known.
func (t *twoPhase) begin(ctx context.Context, marker string, begin session.Txn) error {
	var marked session.Txn
	marked.Create(marker, nil, true)
	marked.Append(begin)
	sent := false
	for {
		err := t.Session.Commit(ctx, marked)
		switch at := znode.RefusedOp(err); {
		case err == nil, at == 0 && errors.Is(err, recipes.ErrNodeExists):
			t.Session.Delete(marker)
			return nil
		case t.Session.Unsettled(ctx, err):
			sent = true
		case at == 0 && errors.Is(err, recipes.ErrNoNode):
			if err := t.Session.Ensure(ctx, gopath.Dir(t.Path())); err != nil {
				return t.failed(err)
			}
		case at >= 0:
			return t.failed(err)
		default:
			err = t.unsettled(ctx, sent, err)
			if errors.Is(err, recipes.ErrUnknownOutcome) {
				t.Session.Delete(marker)
				t.resign() // after this error the caller may not call Coordinate
			}
			return t.failed(err)
		}
	}
}
