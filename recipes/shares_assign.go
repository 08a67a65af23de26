package recipes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	gopath "path"
	"slices"
)

// assignment is the data of the path of Shares. Members are identified by their tokens.
type assignment struct {
	N       int             `json:"n"`
	Members map[Token][]int `json:"members"`
	Refused []Token         `json:"refused,omitempty"` // members with another n
	Ignored []string        `json:"ignored,omitempty"` // names of children of the group that are not members
}

// maxIgnored bounds Ignored, so that the assignment fits into a znode whatever another program does.
const maxIgnored = 100

// memberData is the data of a member: n, for the assigner, and what the application gives.
func (s *shares) memberData() []byte {
	return append(fmt.Appendf(nil, "n=%d ", s.n), s.cfg.Data...)
}

// assign returns the assignment to the members of the group, the oldest first, that moves as few
// numbers as possible. Children of another program, and members whose data this session cannot
// read, are left out. But a member of the previous assignment stays: another assigner has read its
// data, and this one may be wrong. While there is such a member, n does not change: an assigner
// with another n refuses itself.
func (s *shares) assign(before assignment, group []Member) assignment {
	after := assignment{N: s.n, Members: make(map[Token][]int)}
	stays := func(m Member) bool { _, named := before.Members[m.Token]; return named }
	if slices.ContainsFunc(group, stays) && (SharesConfig{}).Validate(before.N) == nil {
		after.N = before.N
	}
	var members []Token
	for _, m := range group {
		n, known := nOf(m)
		if m.Unreadable && stays(m) {
			n, known = after.N, true
		}
		switch {
		case !known && len(after.Ignored) == maxIgnored:
		case !known:
			after.Ignored = append(after.Ignored, m.Name)
		case n != after.N:
			after.Refused = append(after.Refused, m.Token)
		default:
			members = append(members, m.Token)
		}
	}
	spread(after.N, before.Members, members, after.Members)
	return after
}

// nOf returns the n of a member. For other children of the group, known is false.
func nOf(m Member) (n int, known bool) {
	_, err := fmt.Sscanf(string(m.Data), "n=%d ", &n)
	return n, err == nil
}

// spread spreads the numbers below n over the members. The oldest get the larger parts: they own the
// most already. Each keeps what it owns, up to its part, and free numbers fill the rest.
func spread(n int, before map[Token][]int, members []Token, after map[Token][]int) {
	part := func(i int) int { // how many numbers the i-th member gets
		if i < n%len(members) {
			return n/len(members) + 1
		}
		return n / len(members)
	}
	taken := make([]bool, n)
	for i, m := range members {
		after[m] = []int{}
		for _, number := range before[m] { // another client may have written the assignment
			if number >= 0 && number < n && !taken[number] && len(after[m]) < part(i) {
				taken[number] = true
				after[m] = append(after[m], number)
			}
		}
	}
	free := 0
	for i, m := range members {
		for len(after[m]) < part(i) {
			for taken[free] {
				free++
			}
			taken[free] = true
			after[m] = append(after[m], free)
		}
		slices.Sort(after[m])
	}
}

// lead campaigns for the assigner's role and assigns while it has it, until the member leaves. A
// member that cannot assign stays a member: others may fail in the same way, and in the end none
// would be left. It pauses, so that another one can try.
func (p *portion) lead() {
	var pause backoff
	for p.life.Err() == nil {
		leadership, err := p.of.election.Campaign(p.life, nil)
		if err == nil {
			err = p.assignWhile(leadership)
			p.failed(leadership.Resign(context.Background()))
		}
		switch {
		case p.of.session.Err() != nil:
			p.fail(err)
		case err == nil, errors.Is(err, ErrNotHeld): // the candidate's znode was deleted, or the watch ended
			pause = 0
		default:
			pause.after(p, p.life, fmt.Errorf("assigning numbers: %w", err))
		}
	}
}

// assignWhile keeps the assignment up to date, until the leadership is lost or the member leaves.
func (p *portion) assignWhile(leadership Leadership) error {
	leading, stop := WithHold(p.life, leadership)
	defer stop()
	groups, err := p.of.group.Watch(leading)
	if err != nil {
		return cmp.Or(context.Cause(leading), err)
	}
	for group := []Member(nil); ; {
		select {
		case g, ok := <-groups:
			if !ok {
				_, err := p.of.group.Members(leading) // the watch ended because of the context or of err
				return cmp.Or(context.Cause(leading), err)
			}
			group = g
		case <-p.noticed: // another client may have written the assignment
		case <-leading.Done():
			return context.Cause(leading)
		}
		if group == nil {
			continue
		}
		if err := p.write(leading, leadership, group); err != nil {
			return cmp.Or(context.Cause(leading), err)
		}
	}
}

// write writes the assignment for the group, if it has changed. After an unknown outcome it
// reads the path again and repeats the attempt.
func (p *portion) write(ctx context.Context, leadership Leadership, group []Member) error {
	for {
		current, err := p.of.assigned.Get(ctx, "")
		if err != nil {
			return err
		}
		var before assignment
		_ = json.Unmarshal(current.Value, &before) // at first it is empty
		assigned := p.of.assign(before, group)
		after, err := json.Marshal(assigned)
		if err != nil || bytes.Equal(after, current.Value) {
			return err
		}
		known := func(name string) bool { return slices.Contains(before.Ignored, name) }
		if others := slices.DeleteFunc(slices.Clone(assigned.Ignored), known); len(others) > 0 {
			p.warn(fmt.Errorf("%d children of %s are ignored, such as %s: %w", len(others), p.of.group.Path(), others[0], errIgnored))
		}
		err = leadership.Write(ctx, Set(p.of.path, after, AnyVersion))
		if !errors.Is(err, ErrUnknownOutcome) && !errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return err
		}
	}
}

var errIgnored = errors.New("the data is not that of a member, or this session cannot read it, because of its ACL or its size")

// follow takes and gives up numbers as the assignment says. A member that cannot read the assignment
// ends: it would keep numbers that move.
func (p *portion) follow() {
	var pause backoff
	for {
		entries, err := p.of.assigned.Watch(p.life, "")
		if err == nil {
			for entry := range entries {
				p.read(entry.Value)
			}
			_, err = p.of.assigned.Get(p.life, "") // the watch ended because of the context, the session or err
		}
		if err != nil && (!errors.Is(err, ErrThrottled) || !pause.after(p, p.life, err)) {
			p.fail(err)
			return
		}
	}
}

// read reads an assignment.
func (p *portion) read(data []byte) {
	select {
	case p.noticed <- struct{}{}:
	default:
	}
	var a assignment
	if json.Unmarshal(data, &a) != nil {
		return // the assigner has not written yet
	}
	numbers, named := a.Members[p.member.Token()]
	if slices.Contains(a.Refused, p.member.Token()) {
		p.fail(fmt.Errorf("%w: n is %d, and %d for the members there", ErrMismatch, p.of.n, a.N))
		return
	}
	if slices.Contains(a.Ignored, gopath.Base(p.member.Znode())) {
		p.fail(fmt.Errorf("%w: the member that assigns cannot read this one, %s: SessionConfig.ACL must allow it, and SharesConfig.Data must fit into its SessionConfig.MaxPacket", ErrMismatch, p.member.Znode()))
		return
	}
	first := !closed(p.named)
	if first && !named { // the assignment is older than the member
		return
	}
	p.want(numbers)
	if first {
		close(p.named)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
