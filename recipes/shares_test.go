package recipes

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpread: the parts differ by one at most, each number has one member, and only numbers
// that must move do.
func TestSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + random.IntN(50)
		next := Token(0)
		var members []Token
		before := map[Token][]int{}
		for range 20 {
			switch {
			case len(members) > 0 && random.IntN(2) == 0:
				first := random.IntN(len(members))
				members = slices.Delete(members, first, first+1+random.IntN(len(members)-first))
			default:
				for range 1 + random.IntN(4) {
					next++
					members = append(members, next)
				}
			}
			after := map[Token][]int{}
			spread(n, before, members, after)
			checkSpread(t, n, before, members, after)
			before = after
		}
	}
}

func checkSpread(t *testing.T, n int, before map[Token][]int, members []Token, after map[Token][]int) {
	t.Helper()
	if len(after) != len(members) {
		t.Fatalf("%v for the members %v", after, members)
	}
	if len(members) == 0 {
		return
	}
	var all, lengths []int
	kept := 0
	for _, m := range members {
		all = append(all, after[m]...)
		lengths = append(lengths, len(before[m]))
		for _, number := range after[m] {
			if slices.Contains(before[m], number) {
				kept++
			}
		}
		if d := len(after[m]) - n/len(members); d != 0 && d != 1 {
			t.Fatalf("%d of %d numbers for one of %d members", len(after[m]), n, len(members))
		}
	}
	slices.Sort(all)
	if len(all) != n || len(slices.Compact(all)) != n || all[n-1] != n-1 {
		t.Fatalf("%d numbers: %v", n, after)
	}
	// The members that owned the most keep one more.
	slices.SortFunc(lengths, func(a, b int) int { return b - a })
	most := 0
	for i, length := range lengths {
		part := n / len(members)
		if i < n%len(members) {
			part++
		}
		most += min(length, part)
	}
	if kept != most {
		t.Fatalf("%d numbers stayed; %d could: from %v to %v", kept, most, before, after)
	}
}

// An assignment that another client has written does not give out a number twice, or a number
// that does not exist.
func TestSpreadAfterAWrongAssignment(t *testing.T) {
	before := map[Token][]int{1: {-1, 3, 1, 1, 99}, 2: {1, 0}, 7: {2}}
	after := map[Token][]int{}
	spread(4, before, []Token{1, 2}, after)
	if !slices.Equal(after[1], []int{1, 3}) || !slices.Equal(after[2], []int{0, 2}) || len(after) != 2 {
		t.Errorf("%v", after)
	}
}

// A member that assigns with another n refuses itself, not those that are there. An n that
// another client has written counts only if it is valid.
func TestAnAssignerWithAnotherNRefusesItself(t *testing.T) {
	three, four := Member{Token: 3, Data: []byte("n=3 x")}, Member{Token: 4, Data: []byte("n=4 ")}
	foreign := Member{Name: "f", Token: 5, Data: []byte("n=none")}
	all, owned := []int{0, 1, 2, 3}, map[Token][]int{3: {0, 1, 2}}
	for name, test := range map[string]struct {
		before assignment
		group  []Member
		want   assignment
	}{
		"a member stays":      {assignment{N: 3, Members: owned}, []Member{three, four, foreign}, assignment{3, owned, []Token{4}, []string{"f"}}},
		"no member stays":     {assignment{N: 3, Members: owned}, []Member{four, foreign}, assignment{4, map[Token][]int{4: all}, nil, []string{"f"}}},
		"there was none":      {assignment{}, []Member{three, four}, assignment{4, map[Token][]int{4: all}, []Token{3}, nil}},
		"it was overwritten":  {assignment{Members: owned}, []Member{three, four}, assignment{4, map[Token][]int{4: all}, []Token{3}, nil}},
		"it was far too long": {assignment{N: 1 << 50, Members: owned}, []Member{three, four}, assignment{4, map[Token][]int{4: all}, []Token{3}, nil}},
	} {
		if got := (&shares{n: 4}).assign(test.before, test.group); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v; want %+v", name, got, test.want)
		}
	}
}

// stub is the session of a member. refusals says how many requests of each kind it throttles.
type stub struct {
	Client
	lost       func() error
	registered chan *stubRegistration
	records    []Record // the records of a watched number
	lookup     error

	mu       sync.Mutex
	refusals map[string]int
	denials  int // how many registrations it denies
}

// member returns a member without running goroutines.
func (s *stub) member(t *testing.T) *portion {
	s.registered = make(chan *stubRegistration)
	p := &portion{
		of:     &shares{session: s, n: 4, election: stubElection{s: s}, numbers: stubNames{s: s}, assigned: stubConfiguration{s: s}},
		wanted: make(map[int]context.CancelFunc), changed: make(chan struct{}, 1),
		out: make(chan []Share), gone: make(chan struct{}),
	}
	p.life, p.end = context.WithCancelCause(t.Context())
	t.Cleanup(func() { p.fail(ErrReleased); p.work.Wait() })
	return p
}

func (s *stub) Err() error {
	if s.lost == nil {
		return nil
	}
	return s.lost()
}

// refuses counts a refusal down and returns ErrThrottled, or nil if none is left.
func (s *stub) refuses(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusals[what] == 0 {
		return nil
	}
	s.refusals[what]--
	return ErrThrottled
}

// denies counts a denial down.
func (s *stub) denies() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denials--
	return s.denials >= 0
}

// ask returns the refusal, or waits for the end of ctx.
func (s *stub) ask(ctx context.Context, what string) error {
	if err := s.refuses(what); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

type stubElection struct {
	Election
	s *stub
}

func (e stubElection) Campaign(ctx context.Context, _ []byte) (Leadership, error) {
	return nil, e.s.ask(ctx, "campaign")
}

type stubConfiguration struct {
	Configuration
	s *stub
}

func (c stubConfiguration) Get(ctx context.Context, _ string) (Entry, error) {
	return Entry{}, c.s.ask(ctx, "read")
}

// Watch returns a watch that has ended.
func (c stubConfiguration) Watch(context.Context, string) (<-chan Entry, error) {
	ended := make(chan Entry)
	close(ended)
	return ended, c.s.refuses("watch")
}

type stubNames struct {
	Names
	s *stub
}

func (n stubNames) Register(ctx context.Context, _ string, _ []byte) (Registration, error) {
	if err := n.s.refuses("register"); err != nil {
		return nil, err
	}
	if n.s.denies() {
		return nil, ErrAccessDenied
	}
	if n.s.refuses("watch of a new number") != nil {
		return nil, ErrRemoved
	}
	r := &stubRegistration{done: make(chan struct{})}
	select {
	case n.s.registered <- r:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Watch returns a watch of the stub's records, which then ends.
func (n stubNames) Watch(context.Context, string) (<-chan Record, error) {
	ended := make(chan Record, len(n.s.records))
	for _, r := range n.s.records {
		ended <- r
	}
	close(ended)
	return ended, n.s.refuses("wait")
}

func (n stubNames) Lookup(context.Context, string) (Record, error) { return Record{}, n.s.lookup }

type stubRegistration struct {
	Registration
	done chan struct{}
	once sync.Once
}

func (r *stubRegistration) Done() <-chan struct{} { return r.done }

func (r *stubRegistration) Err() error { return ErrExpired }

func (r *stubRegistration) Unregister(context.Context) error {
	r.once.Do(func() { close(r.done) })
	return nil
}

// A slow reader gets the latest numbers, not those of the first change.
func TestASlowReaderGetsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := (&stub{}).member(t)
		go p.publish()
		for number := range 3 {
			p.mu.Lock()
			p.owned = []*share{{number: number}}
			p.mu.Unlock()
			p.changed <- struct{}{}
			synctest.Wait()
		}
		if got := <-p.Changes(); len(got) != 1 || got[0].Number() != 2 {
			t.Errorf("%v", got)
		}
		close(p.gone)
		if got, open := <-p.Changes(); open {
			t.Errorf("after the end: %v", got)
		}
	})
}

func TestLeaveReturnsWhatCouldNotBeGivenUp(t *testing.T) {
	p := (&stub{}).member(t)
	p.fail(ErrReleased)
	p.failed(ErrNotHeld)
	p.failed(ErrAccessDenied)
	close(p.gone)
	if err := p.Leave(t.Context()); !errors.Is(err, ErrAccessDenied) || errors.Is(err, ErrNotHeld) {
		t.Errorf("%v; want %v", err, ErrAccessDenied)
	}
}

// A number that another client deletes at once, or while it is not watched, does not end the member.
func TestADeletedNumberIsTakenAgain(t *testing.T) {
	s := &stub{refusals: map[string]int{"watch of a new number": 1}, lookup: ErrNoNode}
	p := s.member(t)
	p.want([]int{0})
	select {
	case <-s.registered:
	case <-p.Done():
		t.Errorf("the member ends with %v", p.Err())
	}
	if err := p.awaitFree(t.Context(), "1"); err != nil {
		t.Errorf("a number without a znode: %v", err)
	}
}

// The numbers that one assignment takes away disappear together, in one value.
func TestWhatMovesIsMissingAtOnce(t *testing.T) {
	p := (&stub{}).member(t)
	for number := range 3 {
		p.wanted[number] = func() {}
		p.owned = append(p.owned, newShare(nil, number))
	}
	before := slices.Clone(p.owned)
	p.want([]int{1})
	if len(p.owned) != 1 || p.owned[0].Number() != 1 || len(p.changed) != 1 {
		t.Errorf("it owns %v; %d signals", p.owned, len(p.changed))
	}
	for _, s := range before { // the reader of a shorter list asks which shares were revoked
		if closed(s.Revoked()) == (s.number == 1) {
			t.Errorf("share %d is in the list and revoked, or neither", s.number)
		}
	}
}

// stubLeadership does not know the outcome of its first writes.
type stubLeadership struct {
	Leadership
	outcomes []error
	writes   [][]Op
}

func (l *stubLeadership) Write(_ context.Context, ops ...Op) error {
	l.writes = append(l.writes, ops)
	return l.outcomes[len(l.writes)-1]
}

// An assignment whose write has an unknown outcome is written again, and the member stays.
func TestAnUnknownOutcomeIsRepeated(t *testing.T) {
	l := &stubLeadership{outcomes: []error{ErrUnknownOutcome, ErrUnavailable, nil}}
	p := (&stub{}).member(t)
	p.of.assigned = stubValue{p.of.assigned}
	err := p.write(t.Context(), l, []Member{{Token: 1, Data: []byte("n=4 ")}})
	if err != nil || len(l.writes) != 3 || !reflect.DeepEqual(l.writes[0], l.writes[2]) {
		t.Errorf("%v after %v", err, l.writes)
	}
}

// stubValue is a configuration without an assignment.
type stubValue struct{ Configuration }

func (stubValue) Get(context.Context, string) (Entry, error) { return Entry{}, nil }

// Contexts that end with the member end a moment after Done closes. A number that is released in
// between is not taken again.
func TestNoShareIsTakenAfterDone(t *testing.T) {
	s := &stub{}
	p := s.member(t)
	wanted, cancel := context.WithCancel(t.Context()) // ends later than the member
	defer cancel()
	p.startTaking()
	kept := make(chan struct{})
	p.work.Go(func() { p.keep(wanted, 0); close(kept) })
	r := <-s.registered
	<-p.changed
	p.fail(ErrReleased)
	_ = r.Unregister(t.Context())
	select {
	case <-kept:
	case <-s.registered:
		t.Error("a number was taken again after Done")
		cancel()
	}
}

// When the reader gets a shorter list, Err already has the loss of the session.
func TestALostSessionIsReportedBeforeAShorterList(t *testing.T) {
	var p *portion
	s := &stub{lost: func() error {
		if len(p.owned) == 0 && p.life.Err() == nil {
			t.Error("the list is shorter, and Done is not closed")
		}
		return ErrExpired
	}}
	p = s.member(t)
	r := &stubRegistration{done: make(chan struct{})}
	_ = r.Unregister(t.Context())
	lost := newShare(r, 0)
	p.owned = []*share{lost}
	p.hold(t.Context(), lost)
	if !errors.Is(p.Err(), ErrExpired) || len(p.owned) > 0 || !closed(lost.Revoked()) {
		t.Errorf("the member ends with %v and %d numbers", p.Err(), len(p.owned))
	}
}

// An overloaded server throttles each kind of request that a member makes. The member repeats it.
func TestAThrottledMemberStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{refusals: map[string]int{"campaign": 2, "watch": 2, "read": 2, "register": 2}}
		p := s.member(t)
		p.of.cfg.Warn = func(err error) { t.Errorf("it warns of %v", err) }
		p.work.Go(p.lead)
		p.work.Go(p.follow)
		begun := time.Now()
		p.want([]int{0})
		<-s.registered
		if d := time.Since(begun); d != 2*firstPause {
			t.Errorf("registered after %v; want two pauses", d)
		}
		time.Sleep(5 * firstPause)
		synctest.Wait()
		if p.Err() != nil || !reflect.DeepEqual(s.refusals, map[string]int{"campaign": 0, "watch": 0, "read": 0, "register": 0}) {
			t.Errorf("the member ends with %v; %v", p.Err(), s.refusals)
		}
	})
}

// If another client has written the assignment, a member takes each number in it once, and only
// valid numbers.
func TestAMemberOwnsOnlyNumbers(t *testing.T) {
	s := &stub{}
	p := s.member(t)
	p.want([]int{3, 3, -1, 4, 1})
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := slices.Sorted(maps.Keys(p.wanted)); !slices.Equal(got, []int{1, 3}) || p.taking != 2 {
		t.Errorf("%v, and %d are being taken", got, p.taking)
	}
}

// A number that moves before the reader has received it is given up at once: no work uses it. A
// number that the reader has received is kept for the grace.
func TestOnlyReceivedSharesHaveAGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{}
		p := s.member(t)
		p.of.cfg.Grace = time.Hour
		go p.publish()
		defer close(p.gone)
		p.want([]int{0})
		known := <-s.registered
		<-p.Changes()
		p.want([]int{0, 1})
		offered := <-s.registered
		synctest.Wait()
		p.want(nil)
		synctest.Wait()
		if !closed(offered.Done()) || closed(known.Done()) {
			t.Errorf("given up: %v, which was not received, and %v, which was", closed(offered.Done()), closed(known.Done()))
		}
		if got := <-p.Changes(); len(got) > 0 {
			t.Errorf("%v is delivered after its revocation", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if !closed(known.Done()) {
			t.Error("the grace has no end")
		}
	})
}

// A number is free when it has no znode, and not when its owner or its data has changed.
func TestANumberIsFreeWithoutAZnode(t *testing.T) {
	owned, refused := Record{Name: "0", Znode: "/s/numbers/0"}, errors.New("refused")
	for name, test := range map[string]struct {
		records []Record
		lookup  error
		want    error
	}{
		"another owner, and then none": {[]Record{owned, owned, {}}, refused, nil},
		"the watch ends":               {[]Record{owned}, refused, refused},
		"the watch ends without it":    {[]Record{owned}, ErrNoNode, nil},
	} {
		s := &stub{records: test.records, lookup: test.lookup}
		if err := s.member(t).awaitFree(t.Context(), "0"); err != test.want {
			t.Errorf("%s: %v; want %v", name, err, test.want)
		}
	}
}

// After a member has taken a number, it warns of later refusals, and retries after longer and
// longer pauses. A member that has never taken a number ends.
func TestARefusedNumberIsTriedAgain(t *testing.T) {
	for _, took := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &stub{denials: 7}
			p := s.member(t)
			p.took = took
			var warnings []error
			p.of.cfg.Warn = func(err error) { warnings = append(warnings, err) }
			begun := time.Now()
			p.want([]int{0})
			select {
			case <-s.registered:
			case <-p.Done():
			}
			waited := time.Since(begun)
			if took && (waited != (1+2+4+8+16+30+30)*time.Second || len(warnings) != 7 || !errors.Is(warnings[0], ErrAccessDenied)) {
				t.Errorf("taken after %v and %v", waited, warnings)
			}
			if !took && (waited != 0 || !errors.Is(p.Err(), ErrAccessDenied) || len(warnings) > 0) {
				t.Errorf("after %v it ends with %v and %v", waited, p.Err(), warnings)
			}
		})
	}
}

// A child that cannot be read or is not a member is ignored. A member that an earlier assigner has
// accepted stays.
func TestIgnoredChildren(t *testing.T) {
	before := assignment{N: 4, Members: map[Token][]int{1: {0, 1}, 2: {2, 3}}}
	group := []Member{{Token: 1, Data: []byte("n=4 ")}, {Token: 2, Name: "accepted", Unreadable: true}, {Token: 3, Name: "new", Unreadable: true}}
	for i := range maxIgnored {
		group = append(group, Member{Token: Token(10 + i), Name: "foreign", Data: []byte("x")})
	}
	after := (&shares{n: 4}).assign(before, group)
	if !reflect.DeepEqual(after.Members, before.Members) || len(after.Ignored) != maxIgnored || after.Ignored[0] != "new" || after.Refused != nil {
		t.Errorf("%+v", after)
	}
	s := &stub{}
	p := s.member(t)
	p.member, p.named = stubMembership{}, make(chan struct{})
	p.read([]byte(`{"n":4,"members":{"3":[0]},"ignored":["new"]}`))
	if !errors.Is(p.Err(), ErrMismatch) || closed(p.named) {
		t.Errorf("an ignored member ends with %v", p.Err())
	}
}

type stubMembership struct{ Membership }

func (stubMembership) Token() Token { return 3 }

func (stubMembership) Znode() string { return "/s/members/new" }

// failingElection fails with these errors, and then waits.
type failingElection struct {
	Election
	errs  []error
	times []time.Time
}

func (e *failingElection) Campaign(ctx context.Context, _ []byte) (Leadership, error) {
	e.times = append(e.times, time.Now())
	if n := len(e.times); n <= len(e.errs) {
		return nil, e.errs[n-1]
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A member whose candidate was deleted campaigns again at once. One that is refused, for example because
// of another program's candidate, pauses. Neither leaves.
func TestAMemberThatCannotLeadStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &failingElection{errs: []error{ErrNotHeld, ErrForeign, ErrForeign, ErrNotHeld, ErrAccessDenied}}
		p := (&stub{}).member(t)
		p.of.election = e
		warnings := 0
		p.of.cfg.Warn = func(error) { warnings++ }
		begun := time.Now()
		p.work.Go(p.lead)
		time.Sleep(time.Hour)
		synctest.Wait()
		var after []time.Duration
		for _, at := range e.times {
			after = append(after, at.Sub(begun)/time.Second)
		}
		if want := []time.Duration{0, 0, 1, 3, 3, 4}; !slices.Equal(after, want) || warnings != 3 || p.Err() != nil {
			t.Errorf("campaigns after %d s, %d warnings, and it ends with %v; want %d s", after, warnings, p.Err(), want)
		}
	})
}

// After the loss of the session nothing is repeated, and Warn is not called.
func TestALostSessionIsNoWarning(t *testing.T) {
	s := &stub{denials: 1, lost: func() error { return ErrExpired }}
	p := s.member(t)
	p.took = true
	p.of.cfg.Warn = func(err error) { t.Errorf("it warns of %v", err) }
	p.want([]int{0})
	select {
	case <-p.Done():
	case <-s.registered:
		t.Error("the number is taken")
	}
	if !errors.Is(p.Err(), ErrExpired) {
		t.Errorf("it ends with %v", p.Err())
	}
}

// A Join whose context ends reports the last warning. The member is not blocked: it still has to leave.
func TestAJoinThatEndsReportsTheLastWarning(t *testing.T) {
	for _, warned := range []error{nil, ErrForeign} {
		p := (&stub{}).member(t)
		p.trouble = warned
		if err := p.explained(context.Canceled); !errors.Is(err, context.Canceled) || warned != nil && !errors.Is(err, warned) {
			t.Errorf("after the warning %v: %v", warned, err)
		}
		if !p.mu.TryLock() {
			t.Error("the member is blocked")
		}
	}
}

// configured records the configurations of the recipes that Shares consist of.
type configured struct {
	Client
	group    GroupConfig
	election ElectionConfig
}

func (c *configured) Group(_ string, cfg GroupConfig) (Group, error) { c.group = cfg; return nil, nil }

func (c *configured) Election(_ string, cfg ElectionConfig) (Election, error) {
	c.election = cfg
	return nil, nil
}

func (c *configured) Names(string) (Names, error) { return nil, nil }

func (c *configured) Configuration(string) (Configuration, error) { return nil, nil }

// A member whose process is dead neither assigns nor takes numbers. Its numbers can outlive it.
func TestMemberAndAssignerEndWithTheirProcess(t *testing.T) {
	c := &configured{}
	if _, err := NewShares(c, "/s", 1, SharesConfig{}); err != nil || !c.group.EndsWithProcess || !c.election.EndsWithProcess {
		t.Errorf("%v, %+v, %+v", err, c.group, c.election)
	}
}
