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

// BeginAs is Begin, and returns the transaction's ID, which no other one has.
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
	begin.Create(t.path, payload, false)
	begin.Create(t.child(protocolName), record, false)
	begin.Create(t.child(idPrefix+p.ID), nil, false)
	if t.variant != recipes.OwnNodes {
		for _, s := range sites {
			begin.Create(t.child(sitePrefix+s), nil, false) // "leaves the content undefined"
		}
	}
	if t.variant != recipes.AllWatch {
		begin.Create(t.child(coordinatorName), nil, true)
	}
	if err := t.begin(ctx, t.path+"-begun-"+p.ID, begin); err != nil {
		return "", err
	}
	return p.ID, nil
}

// begin commits the beginning, once. A marker beside the transaction tells a repeated
// attempt that the first one has happened, even if the transaction was carried out and
// deleted since. The marker is deleted when that is known.
func (t *twoPhase) begin(ctx context.Context, marker string, begin session.Txn) error {
	var marked session.Txn
	marked.Create(marker, nil, true)
	marked.Append(begin)
	sent := false
	for {
		err := t.session.Commit(ctx, marked)
		switch at := znode.RefusedOp(err); {
		case err == nil, at == 0 && errors.Is(err, recipes.ErrNodeExists):
			t.session.Delete(marker)
			return nil
		case t.session.Unsettled(ctx, err):
			sent = true
		case at == 0 && errors.Is(err, recipes.ErrNoNode):
			if err := t.session.Ensure(ctx, gopath.Dir(t.path)); err != nil {
				return t.failed(err)
			}
		case at >= 0:
			return t.failed(err)
		default:
			err = t.unsettled(ctx, sent, err)
			if errors.Is(err, recipes.ErrUnknownOutcome) {
				t.session.Delete(marker)
				t.resign() // the caller may not come back after this error
			}
			return t.failed(err)
		}
	}
}
