package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// portion implements Portion. It has a goroutine for each number that it is assigned or still
// owns.
type portion struct {
	of     *shares
	member Membership

	life    context.Context // ends when the member leaves or is lost
	end     context.CancelCauseFunc
	work    sync.WaitGroup
	gone    chan struct{} // closed when all goroutines of work have ended
	named   chan struct{} // closed with the first assignment
	noticed chan struct{} // receives when the assignment has changed
	out     chan []Share
	changed chan struct{} // receives when owned is to be sent to out

	mu       sync.Mutex
	wanted   map[int]context.CancelFunc // the numbers of the last assignment
	taking   int                        // how many of them are neither taken nor found to be another member's
	owned    []*share                   // not revoked
	revoked  []*share                   // for publish, which knows whether the reader has received them
	took     bool                       // a number was taken
	failures []error                    // errors of giving up numbers
	trouble  error                      // the error of the last warning, or nil

	warning sync.Mutex // held while Warn runs
}

func newPortion(ctx context.Context, s *shares, member Membership) *portion {
	p := &portion{
		of: s, member: member, wanted: make(map[int]context.CancelFunc),
		gone: make(chan struct{}), named: make(chan struct{}), noticed: make(chan struct{}, 1),
		out: make(chan []Share), changed: make(chan struct{}, 1),
	}
	p.life, p.end = context.WithCancelCause(ctx)
	p.work.Go(p.keepMembership)
	p.work.Go(p.follow)
	p.work.Go(p.lead)
	go func() { p.work.Wait(); close(p.gone) }()
	go p.publish() // until gone
	return p
}

// keepMembership keeps the member in the group until it ends, and then leaves.
func (p *portion) keepMembership() {
	select {
	case <-p.member.Done():
		p.fail(p.member.Err())
	case <-p.life.Done():
	}
	p.failed(p.member.Leave(context.Background()))
}

func (p *portion) Changes() <-chan []Share { return p.out }

func (p *portion) Done() <-chan struct{} { return p.life.Done() }

func (p *portion) Err() error { return context.Cause(p.life) }

func (p *portion) Leave(ctx context.Context) error {
	p.fail(ErrReleased)
	select {
	case <-p.gone:
	case <-ctx.Done():
		return p.of.failed(ctx.Err())
	}
	if err := p.Err(); !errors.Is(err, ErrReleased) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.failures...)
}

// fail ends the member with that reason, or with the session's if that has ended.
func (p *portion) fail(err error) {
	if lost := p.of.session.Err(); lost != nil {
		err = fmt.Errorf("%w: %w", ErrNotHeld, lost)
	}
	p.end(p.of.failed(err))
}

// failed records why something could not be given up, and ends the member: the others wait for
// that until the session ends.
func (p *portion) failed(err error) {
	if err != nil && !errors.Is(err, ErrNotHeld) {
		p.mu.Lock()
		p.failures = append(p.failures, err)
		p.mu.Unlock()
		p.fail(err)
	}
}

// want starts to take the numbers that are new, and to give up those that are missing.
func (p *portion) want(numbers []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.wanted
	p.wanted = make(map[int]context.CancelFunc)
	for _, number := range numbers { // another client may have written the assignment
		if _, twice := p.wanted[number]; !twice && number >= 0 && number < p.of.n {
			p.wanted[number] = before[number]
			delete(before, number)
		}
	}
	for _, giveUp := range before {
		giveUp()
	}
	owned := len(p.owned)
	p.owned = slices.DeleteFunc(p.owned, func(s *share) bool {
		_, kept := p.wanted[s.number]
		if !kept {
			p.revoke(s)
		}
		return !kept
	})
	for number, giveUp := range p.wanted {
		if giveUp == nil {
			wanted, giveUp := context.WithCancel(p.life)
			p.wanted[number] = giveUp
			p.taking++
			p.work.Go(func() { defer giveUp(); p.keep(wanted, number) })
		}
	}
	p.signal(len(p.owned) < owned)
}

// signal makes publish send what is owned. Several numbers that are taken at the same time are
// sent together. Releases are delivered immediately.
func (p *portion) signal(less bool) {
	if less || p.taking == 0 {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// settle records that a number is taken, as s, or that it is another member's, with nil.
func (p *portion) settle(s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taking--
	if s != nil {
		p.owned, p.took = append(p.owned, s), true
	}
	p.signal(false)
}

func (p *portion) startTaking() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taking++
}

// publish sends the latest numbers to the reader.
func (p *portion) publish() {
	defer close(p.out)
	var sent, next []Share
	first, out := true, (chan []Share)(nil)
	for {
		select {
		case out <- next:
			for _, s := range next {
				s.(*share).received = true
			}
			sent, first, out = next, false, nil
		case <-p.changed:
			p.mu.Lock()
			next = make([]Share, 0, len(p.owned))
			for _, s := range p.owned {
				next = append(next, s)
			}
			revoked := p.revoked
			p.revoked = nil
			p.mu.Unlock()
			for _, s := range revoked {
				if !s.received {
					close(s.unused)
				}
			}
			slices.SortFunc(next, func(a, b Share) int { return cmp.Compare(a.Number(), b.Number()) })
			if out = p.out; !first && slices.Equal(next, sent) {
				out = nil
			}
		case <-p.gone:
			return
		}
	}
}

// A backoff is the pause before something is repeated. Each is twice as long as the one before. If the
// server has throttled a request, the pause is always firstPause.
type backoff time.Duration

const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// after warns of err, unless the server has throttled a request, and waits. It reports whether to
// repeat what has failed: the session lives, and ctx, which ends with the member, has not ended. If the
// member left instead, its numbers would move, to members that may fail in the same way.
func (b *backoff) after(p *portion, ctx context.Context, err error) bool {
	if p.of.session.Err() != nil {
		p.fail(err)
	}
	if ctx.Err() != nil {
		return false
	}
	if *b = min(2**b, backoff(lastPause)); *b == 0 || errors.Is(err, ErrThrottled) {
		*b = backoff(firstPause)
	}
	if !errors.Is(err, ErrThrottled) {
		p.warn(err)
	}
	pause := time.NewTimer(time.Duration(*b))
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// warn reports a failure that does not end the member.
func (p *portion) warn(err error) {
	err = p.of.failed(err)
	p.mu.Lock()
	p.trouble = err
	p.mu.Unlock()
	if p.of.cfg.Warn != nil {
		p.warning.Lock()
		defer p.warning.Unlock()
		p.of.cfg.Warn(err)
	}
}

// keep takes a number and holds it until it is no longer wanted. A number that is lost is taken
// again.
func (p *portion) keep(wanted context.Context, number int) {
	var pause backoff
	for {
		r, err := p.take(wanted, number)
		if errors.Is(err, ErrThrottled) && pause.after(p, wanted, err) {
			continue
		}
		if err != nil {
			p.settle(nil)
			if wanted.Err() == nil && !p.able() {
				p.fail(err)
			}
			if !pause.after(p, wanted, fmt.Errorf("taking number %d: %w", number, err)) {
				return
			}
			p.startTaking()
			continue
		}
		pause = 0
		s := newShare(r, number)
		// The member's Done closes before the contexts that end with it. A number that is released
		// in between must not be taken again.
		unwanted := func() bool { return cmp.Or(p.life.Err(), wanted.Err()) != nil }
		if unwanted() {
			p.settle(nil)
		} else {
			p.settle(s)
			p.hold(wanted, s)
		}
		p.failed(s.Release(context.Background()))
		if unwanted() {
			return
		}
		p.startTaking()
	}
}

// able reports whether the member has ever taken a number. A member that never could is probably
// itself the cause, and leaves the numbers to others.
func (p *portion) able() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took
}

// take registers the number. If another member owns it, it waits until it is free.
func (p *portion) take(wanted context.Context, number int) (Registration, error) {
	name := strconv.Itoa(number)
	var pause backoff
	for {
		r, err := p.of.numbers.Register(wanted, name, p.of.cfg.Data)
		switch {
		case errors.Is(err, ErrRemoved): // deleted by another client, before it was watched
			continue
		case !errors.Is(err, ErrNodeExists):
			return r, err
		}
		p.settle(nil)
		err = p.awaitFree(wanted, name)
		if err != nil { // the owner's znode cannot be watched, which is no reason to leave
			pause.after(p, wanted, fmt.Errorf("waiting for number %d: %w", number, err))
		}
		p.startTaking()
	}
}

// awaitFree waits until no member owns the number.
func (p *portion) awaitFree(wanted context.Context, name string) error {
	watching, stop := context.WithCancel(wanted)
	defer stop()
	records, err := p.of.numbers.Watch(watching, name)
	if err != nil {
		return err
	}
	for r := range records {
		if r.None() {
			return nil
		}
	}
	_, err = p.of.numbers.Lookup(wanted, name) // the watch ended because of the context, the session or err
	if errors.Is(err, ErrNoNode) {
		err = nil
	}
	return err
}

// hold returns when the share is lost or released, or when the grace after its revocation has
// passed. A share that the reader has never received needs no grace.
func (p *portion) hold(wanted context.Context, s *share) {
	lost := s.Done()
	select {
	case <-lost:
		if p.of.session.Err() != nil {
			p.fail(s.Err()) // before the list gets shorter, so that its reader knows why
		}
	case <-wanted.Done():
	}
	p.drop(s)
	grace := time.NewTimer(p.of.cfg.Grace)
	defer grace.Stop()
	select {
	case <-lost:
	case <-s.unused:
	case <-grace.C:
	}
}

func (p *portion) drop(s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.owned, s); i >= 0 { // otherwise want has removed it
		// Before the list gets shorter, because what is missing from it has been revoked.
		p.revoke(s)
		p.owned = slices.Delete(p.owned, i, i+1)
		p.signal(true)
	}
}

// revoke revokes a share that is owned. The caller holds mu, and signals that the list is shorter.
func (p *portion) revoke(s *share) {
	close(s.revoked)
	p.revoked = append(p.revoked, s)
}

// share implements Share.
type share struct {
	Registration
	number   int
	revoked  chan struct{}
	received bool          // by the reader of Changes; only publish uses it
	unused   chan struct{} // closed when it is revoked and was never received
}

func (s *share) Number() int { return s.number }

func newShare(r Registration, number int) *share {
	return &share{Registration: r, number: number, revoked: make(chan struct{}), unused: make(chan struct{})}
}

func (s *share) Revoked() <-chan struct{} { return s.revoked }

func (s *share) Release(ctx context.Context) error { return s.Unregister(ctx) }
