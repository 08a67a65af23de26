package queue

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// Resume resumes a delivery that another process has received in this session: see
// session.Resume. znode and token are the claim's. If the claim does not exist, or if
// another client has written to the element since, the error matches recipes.ErrNotHeld,
// and nothing is changed.
func (q *queue) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.Delivery, error) {
	e, attempt, ok := q.parseClaim(znode)
	if !ok {
		return nil, q.Failed(fmt.Errorf("resume: %w: %q is not a claim of this queue", recipes.ErrInvalid, znode))
	}
	node, err := q.Session.Get(ctx, q.Child(e.Name))
	switch {
	case errors.Is(err, recipes.ErrNoNode), err == nil && node.Stat.Version != attempt:
		return nil, q.Failed(fmt.Errorf("resume: %w: %s was changed by another client", recipes.ErrRemoved, e.Name))
	case err != nil:
		return nil, q.Failed(err)
	}
	if _, err := line.ResumeHeld(ctx, q.Session, znode, token); err != nil {
		return nil, q.Failed(err)
	}
	return &delivery{
		Hold:  line.Resumed(q.Session, znode, token, nil),
		queue: q, candidate: candidate{e, node}, attempt: attempt, done: make(chan struct{}),
	}, nil
}

// parseClaim is the reverse of claim.
func (q *queue) parseClaim(znode string) (e queued, attempt int32, ok bool) {
	base := gopath.Base(znode)
	at := strings.LastIndex(base, "-")
	if at < 0 {
		return queued{}, 0, false
	}
	number, _ := strconv.ParseInt(base[at+1:], 10, 32) // if it is not a number, the names below differ
	elements := q.parse([]string{base[:at]})
	if len(elements) == 0 || q.claim(elements[0].Name, int32(number)) != znode {
		return queued{}, 0, false
	}
	return elements[0], int32(number), true
}
