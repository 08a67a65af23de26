package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// untrustedText has what a terminal must not get: escape sequences, controls, line breaks of all
// kinds, controls of direction. It begins lines and cells with FORGED.
var untrustedText = "ESCAPED" + controls() + "\u009b2J\x1bc\x1bPx\x1b\\\x1b]0;x\a\x7f\u200b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\U000e0001" +
	"\nFORGED\rFORGED\r\nFORGED\tFORGED\vFORGED\fFORGED\u0085FORGED\u2028FORGED\u2029FORGED"

// untrustedBytes also has bytes that are not UTF-8.
var untrustedBytes = untrustedText + "\x9b2J\x90x\x9c\xff\nFORGED"

// controls returns U+0001 to U+001F without line breaks and tabs, and U+0080 to U+009F.
func controls() string {
	var all []rune
	for r := rune(1); r < 0xa0; r++ {
		if r < ' ' && (r < '\t' || r > '\r') || r > '~' {
			all = append(all, r)
		}
	}
	return string(all)
}

// untrusted is a plugin, with its sessions, that puts hostile text into every answer.
type untrusted struct {
	recipes.Client
	text   string // in each string and error
	err    error  // the error of each request of a recipe
	opens  error  // the error of the first Open; later ones always fail
	lost   bool   // grants are lost
	runs   bool   // but only when the command runs
	waits  bool   // locks are acquired only after the wait queue was read
	listed chan struct{}

	mu     sync.Mutex
	opened int
}

// fresh returns a copy that was not launched yet.
func (u *untrusted) fresh() *untrusted {
	return &untrusted{text: u.text, err: u.err, opens: u.opens, lost: u.lost, runs: u.runs, waits: u.waits, listed: make(chan struct{})}
}

func (u *untrusted) error() error { return errors.New(u.text) }

// launch implements verb.Tool.Launch.
func (u *untrusted) launch(_ context.Context, cfg host.Config) (verb.Plugin, error) {
	cfg.Logger.Error(u.text, "key "+u.text, u.text, "error", u.error())
	return untrustedPlugin{u}, nil
}

type untrustedPlugin struct{ *untrusted }

func (u untrustedPlugin) Open(context.Context, recipes.SessionConfig) (recipes.Client, error) {
	return u.untrusted.open()
}
func (u untrustedPlugin) Close(context.Context) error { return u.error() }

func (u *untrusted) Stats(context.Context) (recipes.Stats, error) { return recipes.Stats{}, u.error() }

func (u *untrusted) open() (recipes.Client, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.opened++
	switch {
	case u.opened > 1:
		return nil, u.error()
	case u.opens != nil:
		return nil, u.opens
	}
	return u, nil
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (u *untrusted) ID() int64                   { return 7 }
func (u *untrusted) Timeout() time.Duration      { return 10 * time.Second }
func (u *untrusted) State() recipes.State        { return recipes.Connected }
func (u *untrusted) Done() <-chan struct{}       { return closed() } // so that a watch ends
func (u *untrusted) Err() error                  { return u.error() }
func (u *untrusted) Close(context.Context) error { return u.error() }
func (u *untrusted) Events(context.Context) <-chan recipes.Event {
	return make(chan recipes.Event)
}

func (u *untrusted) Children(context.Context, string) ([]string, error) {
	return []string{u.text}, u.err
}

func (u *untrusted) foreign() *recipes.ForeignError {
	return &recipes.ForeignError{Dialect: recipes.Dialect(u.text), Recipe: u.text, Znode: "/" + u.text}
}

func (u *untrusted) Contenders(_ context.Context, path string, _ ...recipes.Kind) (recipes.Lines, error) {
	if u.waits {
		u.mu.Lock()
		defer u.mu.Unlock()
		select {
		case <-u.listed:
		default:
			close(u.listed)
		}
	}
	lines := recipes.Lines{Permits: 3, Unknown: 2}
	for i, kind := range []recipes.Kind{recipes.KindLock, recipes.KindSharedLock, recipes.KindPriorityLock, recipes.KindSemaphore, recipes.KindElection, recipes.Kind(u.text)} {
		lines.Verdicts = append(lines.Verdicts, recipes.Verdict{Kind: kind, Foreign: u.foreign()})
		for _, c := range []recipes.Contender{{SessionID: 3, Holds: true}, {SessionID: int64(i % 2)}, {SessionID: 8, Dialect: recipes.Kazoo}, {SessionID: 9, Dialect: recipes.Dialect(u.text)}} {
			c.Kind, c.Znode, c.Data, c.Mode = kind, path+"/"+u.text+"lock-0000000001", []byte(untrustedBytes), recipes.Mode(u.text)
			lines.Contenders = append(lines.Contenders, c)
		}
	}
	return lines, u.err
}

func (u *untrusted) Lock(string, recipes.LockConfig) (recipes.Lock, error) {
	return untrustedLock[recipes.Hold]{u, u.grant()}, nil
}
func (u *untrusted) Semaphore(string, recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	return untrustedLock[recipes.Hold]{u, u.grant()}, nil
}
func (u *untrusted) Slots(string, recipes.SemaphoreConfig) (recipes.Slots, error) {
	return untrustedLock[recipes.SlotHold]{u, u.grant()}, nil
}
func (u *untrusted) SharedLock(string, recipes.SharedLockConfig) (recipes.SharedLock, error) {
	return untrustedLock[recipes.SharedHold]{u, u.grant()}, nil
}
func (u *untrusted) PriorityLock(string, recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	return untrustedLock[recipes.PriorityHold]{u, u.grant()}, nil
}
func (u *untrusted) Election(string, recipes.ElectionConfig) (recipes.Election, error) {
	return untrustedElection{untrusted: u}, nil
}
func (u *untrusted) Shares(_ string, _ int, cfg recipes.SharesConfig) (recipes.Shares, error) {
	cfg.Warn(u.error())
	return untrustedShares{untrusted: u}, nil
}
func (u *untrusted) Queue(string, recipes.QueueConfig) (recipes.Queue, error) {
	return untrustedQueue{untrustedConsumer{untrusted: u, once: new(sync.Once)}}, nil
}
func (u *untrusted) PriorityQueue(string, recipes.QueueConfig) (recipes.PriorityQueue, error) {
	return untrustedPriorityQueue{untrustedConsumer{untrusted: u, once: new(sync.Once)}}, nil
}
func (u *untrusted) Group(string, recipes.GroupConfig) (recipes.Group, error) {
	return untrustedGroup{untrusted: u}, nil
}
func (u *untrusted) Names(string) (recipes.Names, error) { return untrustedNames{untrusted: u}, nil }
func (u *untrusted) Barrier(string) (recipes.Barrier, error) {
	return untrustedBarrier{untrusted: u}, nil
}
func (u *untrusted) DoubleBarrier(string, recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	return untrustedDoubleBarrier{untrusted: u}, nil
}
func (u *untrusted) Transaction(string, recipes.TransactionConfig) (recipes.Transaction, error) {
	return untrustedTransaction{untrusted: u}, nil
}
func (u *untrusted) Configuration(string) (recipes.Configuration, error) {
	return untrustedConfiguration{untrusted: u}, nil
}
func (u *untrusted) Counter(string, recipes.CounterConfig) (recipes.Counter, error) {
	return untrustedCounter{untrusted: u}, nil
}
func (u *untrusted) Latch(string, recipes.LatchConfig) (recipes.Latch, error) {
	return untrustedLatch{untrusted: u}, nil
}

// untrustedGrant is a grant of any recipe.
type untrustedGrant struct {
	*untrusted
	recipes.Grant // not called

	start  *sync.Once // of the command
	closed chan struct{}
}

func (u *untrusted) grant() untrustedGrant {
	g := untrustedGrant{untrusted: u, start: new(sync.Once), closed: make(chan struct{})}
	if u.lost && !u.runs {
		close(g.closed)
	}
	return g
}

func (g untrustedGrant) Token() recipes.Token  { return 5 }
func (g untrustedGrant) Znode() string         { return "/" + g.text }
func (g untrustedGrant) Done() <-chan struct{} { return g.closed }

// Err returns nil before the command starts, if there is one, and then a loss.
func (g untrustedGrant) Err() (err error) {
	if !g.lost {
		return nil
	}
	err = g.error()
	if g.runs {
		g.start.Do(func() { err = nil; close(g.closed) })
	}
	return err
}
func (g untrustedGrant) Write(context.Context, ...recipes.Op) error     { return g.err }
func (g untrustedGrant) ValidUntil() time.Time                          { return time.Now().Add(time.Hour) }
func (g untrustedGrant) Release(context.Context) error                  { return g.error() }
func (g untrustedGrant) Slot() int                                      { return 1 }
func (g untrustedGrant) Mode() recipes.Mode                             { return recipes.Writing }
func (g untrustedGrant) Downgrade(context.Context) error                { return g.error() }
func (g untrustedGrant) HandOff(context.Context, string) error          { return g.error() }
func (g untrustedGrant) Revoked() <-chan struct{}                       { return nil }
func (g untrustedGrant) Acknowledge(context.Context, []byte) error      { return g.error() }
func (g untrustedGrant) Resign(context.Context) error                   { return g.error() }
func (g untrustedGrant) Leave(context.Context) error                    { return g.error() }
func (g untrustedGrant) Members() []string                              { return []string{g.text} }
func (g untrustedGrant) Update(context.Context, []byte) error           { return g.error() }
func (g untrustedGrant) Name() string                                   { return g.text }
func (g untrustedGrant) Unregister(context.Context) error               { return g.error() }
func (g untrustedGrant) Number() int                                    { return 1 }
func (g untrustedGrant) Element() recipes.Element                       { return g.element() }
func (g untrustedGrant) Attempt() int                                   { return 2 }
func (g untrustedGrant) Ack(context.Context) error                      { return nil }
func (g untrustedGrant) Return(context.Context) error                   { return g.error() }
func (g untrustedGrant) Payload() []byte                                { return []byte(untrustedBytes) }
func (g untrustedGrant) Vote(context.Context, recipes.Vote) error       { return g.err }
func (g untrustedGrant) Wait(context.Context) (recipes.Decision, error) { return g.decision() }
func (g untrustedGrant) decision() (recipes.Decision, error) {
	return recipes.Decision{Reason: untrustedBytes}, g.err
}
func (u *untrusted) element() recipes.Element {
	return recipes.Element{ID: recipes.ElementID(u.text), Data: []byte(untrustedBytes)}
}

// untrustedLock is a lock of any kind, whose grants are H.
type untrustedLock[H any] struct {
	*untrusted
	grant any
}

func (l untrustedLock[H]) acquire(ctx context.Context) (h H, err error) {
	if l.waits {
		select {
		case <-l.listed:
		case <-ctx.Done():
			return h, ctx.Err()
		}
	}
	if l.err != nil {
		return h, l.err
	}
	return l.grant.(H), nil
}
func (l untrustedLock[H]) Path() string                                            { return "/l" }
func (l untrustedLock[H]) SessionID() int64                                        { return 7 }
func (l untrustedLock[H]) Acquire(ctx context.Context) (H, error)                  { return l.acquire(ctx) }
func (l untrustedLock[H]) TryAcquire(ctx context.Context) (H, error)               { return l.acquire(ctx) }
func (l untrustedLock[H]) AcquireRead(ctx context.Context) (H, error)              { return l.acquire(ctx) }
func (l untrustedLock[H]) AcquireWrite(ctx context.Context) (H, error)             { return l.acquire(ctx) }
func (l untrustedLock[H]) TryRead(ctx context.Context) (H, error)                  { return l.acquire(ctx) }
func (l untrustedLock[H]) TryWrite(ctx context.Context) (H, error)                 { return l.acquire(ctx) }
func (l untrustedLock[H]) Revoke(context.Context, string) error                    { return l.err }
func (l untrustedLock[H]) RevokeForced(context.Context, string) error              { return l.err }
func (l untrustedLock[H]) Contenders(context.Context) ([]recipes.Contender, error) { return nil, l.err }

type untrustedElection struct {
	recipes.Election
	*untrusted
}

func (e untrustedElection) Campaign(context.Context, []byte) (recipes.Leadership, error) {
	return e.grant(), e.err
}

type untrustedShares struct {
	recipes.Shares
	*untrusted
}

func (s untrustedShares) Join(context.Context) (recipes.Portion, error) {
	p := untrustedPortion{untrusted: s.untrusted, lists: make(chan []recipes.Share, 1), left: make(chan struct{})}
	p.lists <- []recipes.Share{s.grant()}
	if s.lost {
		close(p.left)
	}
	return p, s.err
}

type untrustedPortion struct {
	*untrusted
	lists chan []recipes.Share
	left  chan struct{}
}

func (p untrustedPortion) Changes() <-chan []recipes.Share { return p.lists }
func (p untrustedPortion) Done() <-chan struct{}           { return p.left }
func (p untrustedPortion) Leave(context.Context) error     { close(p.left); return p.error() }
func (p untrustedPortion) Err() error {
	if p.lost {
		return p.error()
	}
	return nil
}

type untrustedConsumer struct {
	*untrusted
	once *sync.Once
}

func (c untrustedConsumer) Path() string                                  { return "/q" }
func (c untrustedConsumer) Take(context.Context) (recipes.Element, error) { return c.element(), c.err }
func (c untrustedConsumer) Peek(context.Context) (recipes.Element, error) { return c.element(), c.err }
func (c untrustedConsumer) Len(context.Context) (int, error)              { return 1, c.err }
func (c untrustedConsumer) DeadLetters(context.Context) ([]recipes.Element, error) {
	return []recipes.Element{c.element(), c.element()}, c.err
}
func (c untrustedConsumer) Receive(context.Context) (recipes.Delivery, error) {
	err := c.error() // so that a worker ends
	c.once.Do(func() { err = c.err })
	return c.grant(), err
}
func (c untrustedConsumer) TakeMany(ctx context.Context, most int) ([]recipes.Element, error) {
	e, err := c.Take(ctx)
	return []recipes.Element{e}, err
}
func (c untrustedConsumer) ReceiveMany(ctx context.Context, most int) ([]recipes.Delivery, error) {
	d, err := c.Receive(ctx)
	return []recipes.Delivery{d}, err
}
func (c untrustedConsumer) AckMany(context.Context, ...recipes.Delivery) error { return c.err }

type untrustedQueue struct{ untrustedConsumer }

func (q untrustedQueue) Put(context.Context, []byte) (recipes.ElementID, error) {
	return recipes.ElementID(q.text), q.err
}
func (q untrustedQueue) PutMany(_ context.Context, data ...[]byte) ([]recipes.ElementID, error) {
	return slices.Repeat([]recipes.ElementID{recipes.ElementID(q.text)}, len(data)), q.err
}

type untrustedPriorityQueue struct{ untrustedConsumer }

func (q untrustedPriorityQueue) Put(context.Context, int, []byte) (recipes.ElementID, error) {
	return recipes.ElementID(q.text), q.err
}
func (q untrustedPriorityQueue) PutMany(_ context.Context, _ int, data ...[]byte) ([]recipes.ElementID, error) {
	return slices.Repeat([]recipes.ElementID{recipes.ElementID(q.text)}, len(data)), q.err
}

type untrustedGroup struct {
	recipes.Group
	*untrusted
}

func (g untrustedGroup) member() recipes.Member {
	return recipes.Member{Name: g.text, Znode: "/" + g.text, Token: 5, SessionID: 7, Data: []byte(untrustedBytes)}
}
func (g untrustedGroup) Join(context.Context, []byte) (recipes.Membership, error) {
	return g.grant(), g.err
}
func (g untrustedGroup) Members(context.Context) ([]recipes.Member, error) {
	unreadable := g.member()
	unreadable.Unreadable, unreadable.Token = true, 0
	return []recipes.Member{g.member(), unreadable}, g.err
}
func (g untrustedGroup) Watch(context.Context) (<-chan []recipes.Member, error) {
	return stream([]recipes.Member{g.member()}, nil), g.err
}

// stream returns a closed channel with elements.
func stream[T any](all ...T) <-chan T {
	c := make(chan T, len(all))
	for _, one := range all {
		c <- one
	}
	close(c)
	return c
}

type untrustedNames struct {
	recipes.Names
	*untrusted
}

func (n untrustedNames) record() recipes.Record {
	return recipes.Record{Name: n.text, Znode: "/" + n.text, Token: 5, SessionID: 7, Data: []byte(untrustedBytes)}
}
func (n untrustedNames) Register(context.Context, string, []byte) (recipes.Registration, error) {
	return n.grant(), n.err
}
func (n untrustedNames) RegisterPersistent(context.Context, string, []byte) error { return n.err }
func (n untrustedNames) Unregister(context.Context, string, recipes.Token) error  { return n.err }
func (n untrustedNames) Lookup(context.Context, string) (recipes.Record, error) {
	return n.record(), n.err
}
func (n untrustedNames) List(context.Context) ([]recipes.Record, error) {
	unreadable := n.record()
	unreadable.Unreadable, unreadable.Token = true, 0
	return []recipes.Record{n.record(), unreadable}, n.err
}

type untrustedBarrier struct {
	recipes.Barrier
	*untrusted
}

func (b untrustedBarrier) Set(context.Context, []byte) error   { return b.err }
func (b untrustedBarrier) Remove(context.Context) error        { return b.err }
func (b untrustedBarrier) Wait(context.Context) error          { return b.err }
func (b untrustedBarrier) IsSet(context.Context) (bool, error) { return true, b.err }

type untrustedDoubleBarrier struct {
	recipes.DoubleBarrier
	*untrusted
}

func (b untrustedDoubleBarrier) Enter(context.Context, []byte) (recipes.Passage, error) {
	return b.grant(), b.err
}

type untrustedTransaction struct {
	recipes.Transaction
	*untrusted
}

func (t untrustedTransaction) Begin(context.Context, []byte, ...string) error { return t.err }
func (t untrustedTransaction) Coordinate(context.Context) (recipes.Decision, error) {
	return t.grant().decision()
}
func (t untrustedTransaction) Abort(context.Context, string) (recipes.Decision, error) {
	return t.grant().decision()
}
func (t untrustedTransaction) Join(context.Context, string) (recipes.Site, error) {
	return untrustedSite{t.grant()}, t.err
}
func (t untrustedTransaction) Status(context.Context) (recipes.TransactionStatus, error) {
	return recipes.TransactionStatus{
		Variant: recipes.Variant(t.text), Payload: []byte(untrustedBytes), Decision: &recipes.Decision{Reason: untrustedBytes},
		Sites: []recipes.SiteStatus{{Name: t.text, Vote: recipes.Vote(t.text)}},
	}, t.err
}

type untrustedSite struct{ untrustedGrant }

func (s untrustedSite) Done(context.Context) error { return s.err }

type untrustedConfiguration struct {
	recipes.Configuration
	*untrusted
}

func (c untrustedConfiguration) Path() string { return "/c" }
func (c untrustedConfiguration) entry() recipes.Entry {
	return recipes.Entry{Key: c.text, Value: []byte(untrustedBytes), Revision: 3}
}
func (c untrustedConfiguration) Get(context.Context, string) (recipes.Entry, error) {
	return c.entry(), c.err
}
func (c untrustedConfiguration) Set(context.Context, string, []byte, recipes.Revision) (recipes.Revision, error) {
	return 3, c.err
}
func (c untrustedConfiguration) Delete(context.Context, string, recipes.Revision) error { return c.err }
func (c untrustedConfiguration) Watch(context.Context, string) (<-chan recipes.Entry, error) {
	return stream(c.entry(), recipes.Entry{Key: c.text}), c.err
}
func (c untrustedConfiguration) Snapshot(context.Context) ([]recipes.Entry, error) {
	return []recipes.Entry{c.entry(), c.entry()}, c.err
}
func (c untrustedConfiguration) WatchTree(context.Context) (<-chan []recipes.Entry, error) {
	return stream([]recipes.Entry{c.entry()}, nil), c.err
}

type untrustedCounter struct {
	recipes.Counter
	*untrusted
}

func (c untrustedCounter) Get(context.Context) (int64, error)        { return 1, c.err }
func (c untrustedCounter) Add(context.Context, int64) (int64, error) { return 1, c.err }

type untrustedLatch struct {
	recipes.Latch
	*untrusted
}

func (l untrustedLatch) Count(context.Context) (int64, error)     { return 1, l.err }
func (l untrustedLatch) CountDown(context.Context) (int64, error) { return 1, l.err }
func (l untrustedLatch) Wait(context.Context) error               { return l.err }

// doctored maps the chroot of a session to what doctor finds there.
var doctored = map[string]*untrusted{
	"answers": {text: untrustedText},
	"errors":  {text: untrustedText, err: errors.New(untrustedText)},
	"refusal": {text: untrustedText, opens: fmt.Errorf("%w: %s", recipes.ErrAuthFailed, untrustedText)},
}

// openDoctored opens the sessions of the plugin that doctor and top use. It writes hostile text to
// its log.
func openDoctored(_ context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	fmt.Fprintln(os.Stderr, untrustedBytes)
	u := doctored[strings.TrimPrefix(cfg.Chroot, "/")]
	if u == nil {
		u = doctored["answers"]
	}
	return u.fresh().open()
}
