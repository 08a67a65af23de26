package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	gopath "path"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// revocation is one contender's answer.
type revocation struct {
	Znode  string `json:"znode"`
	Kind   string `json:"kind"`
	Data   string `json:"data"`
	Base64 []byte `json:"data_base64,omitempty"` // of data that are no text
	Result string `json:"result"`                // asked, gone, refused, failed
	Error  string `json:"error,omitempty"`

	err error
}

// revoker is the asking end of a shared lock or a priority lock.
type revoker interface {
	Revoke(ctx context.Context, znode string) error
	RevokeForced(ctx context.Context, znode string) error
}

// ask asks all of them at the same time: the times that they have allowed, or
// take, run side by side.
func (v *revokeVerb) ask(ctx context.Context, s recipes.Session, targets []recipes.Contender) ([]revocation, error) {
	shared, err := s.SharedLock(v.path, recipes.SharedLockConfig{})
	if err != nil {
		return nil, err
	}
	prior, err := s.PriorityLock(v.path, recipes.PriorityLockConfig{})
	if err != nil {
		return nil, err
	}
	asked := make([]revocation, len(targets))
	var g errgroup.Group
	for i, c := range targets {
		g.Go(func() error {
			l := choose[revoker](c.Kind == recipes.KindPriorityLock, prior, shared)
			asked[i] = v.result(c, v.revoke(ctx, l, c))
			if v.wait && asked[i].err == nil {
				asked[i].await(v.awaitGone(ctx, s, c))
			}
			return nil
		})
	}
	return asked, g.Wait()
}

func (v *revokeVerb) revoke(ctx context.Context, l revoker, c recipes.Contender) error {
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout+c.Grace)
	defer cancel()
	return choose(v.force, l.RevokeForced, l.Revoke)(ctx, c.Znode)
}

// awaitGone waits until a contender has left. Its znode is there until then, and
// until a znode is gone is what a barrier waits.
func (v *revokeVerb) awaitGone(ctx context.Context, s recipes.Session, c recipes.Contender) error {
	for {
		b, err := s.Barrier(c.Znode)
		if err != nil {
			return err
		}
		if err := b.Wait(ctx); err != nil || c.Kind != recipes.KindPriorityLock {
			return err
		}
		// One that has waited in a priority lock holds under another name.
		lines, err := s.Contenders(ctx, v.path, recipes.KindPriorityLock)
		if err != nil {
			return err
		}
		holds := false
		for _, other := range lines.Contenders {
			if guid(other.Znode) == guid(c.Znode) {
				c, holds = other, true
			}
		}
		if !holds {
			return nil
		}
	}
}

// guid is what the name of a contender's znode begins with, before its kind: read
// and write, or reading and writing of one that holds.
func guid(znode string) string {
	name, _, _ := strings.Cut(gopath.Base(znode), "-read")
	name, _, _ = strings.Cut(name, "-writ")
	return name
}

// result is the answer of a contender, in which err is what asking it has returned.
func (v *revokeVerb) result(c recipes.Contender, err error) revocation {
	r := revocation{Znode: c.Znode, Kind: kindOf(c), Result: choose(v.force, "gone", "asked"), err: err}
	r.Data, r.Base64 = inJSON(c.Data)
	if err == nil {
		return r
	}
	r.Result, r.Error = "failed", err.Error()
	if errors.Is(err, recipes.ErrNotRevocable) {
		r.Result, r.Error = "refused", "it was not taken with -revocable"
		if c.Revocable {
			r.Error = "it was taken without -force-after, so it can only be asked, without -force"
		}
	}
	return r
}

// await notes whether a contender that was asked has left.
func (r *revocation) await(err error) {
	r.err = err
	switch {
	case err == nil:
		r.Result = "gone"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		r.Error = "it has not gone"
	default:
		r.Error = "whether it goes is not known: " + err.Error()
	}
}

func (v *revokeVerb) show(out *output, asked []revocation) error {
	return out.result(struct {
		Path    string       `json:"path"`
		Holders []revocation `json:"holders"`
	}{v.path, asked}, func(w io.Writer) {
		for _, r := range asked {
			text := fmt.Sprintf("%s  %s  %s", r.Result, r.Kind, printable(r.data()))
			if r.Error != "" {
				text += ": " + r.Error
			}
			fmt.Fprintln(w, text)
		}
	})
}

func (r revocation) data() []byte {
	if r.Base64 != nil {
		return r.Base64
	}
	return []byte(r.Data)
}

// worst is the error of the whole: one that failed comes before one that refused.
func worst(asked []revocation) error {
	refused := false
	for _, r := range asked {
		switch {
		case errors.Is(r.err, recipes.ErrNotRevocable):
			refused = true
		case r.err != nil:
			return r.err
		}
	}
	if refused {
		return exitError{code: exitRefused} // the table has said it
	}
	return nil
}
