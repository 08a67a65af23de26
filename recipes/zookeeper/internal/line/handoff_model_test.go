package line

import (
	"fmt"
	"hash/maphash"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/race"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// This file is a model of handoff, explored exhaustively: three contenders, a
// bounded number of faults, and every order of what clients, servers and the
// network can do. What a waiter concludes is not modelled: the model calls the
// functions of handoff_step.go, as the code does.
//
// Modelled:
//
//   - a leader, and a follower that applies the leader's transactions late;
//   - for each session its server, its connection with the messages in flight, its
//     watches, and an expiry of which the client learns late;
//   - creation with or without a look at the parent, the guess of the
//     predecessor's name, listings, both watches, release, and giving up;
//   - a connection that is lost before or after a commit, or before the reply;
//   - a place that another client deletes;
//   - the parent removed and made again, so that names come back;
//   - a contender of another library, whose data change.
//
// Not modelled:
//
//   - the session's own clock, whose promise is in package session;
//   - a request that a server forwards after its client has connected elsewhere;
//   - numbers that have come to an end;
//   - a session with several contenders, and more than one line;
//   - a deletion that is under way when its name is given again: to the contender that
//     has the name it is a deletion by another client.
//
// Assumed, as the package comment says: where the parent is made again, the releases of
// before have arrived, or their senders have been told.

const (
	contenders = 3
	foreigner  = contenders // the index of the znode of another library
	nodes      = contenders + 1
	leader     = 0
	follower   = 1
)

// mnode is a znode below the line's path.
type mnode struct {
	there   bool
	number  int8
	czxid   int8
	version int8
}

// mserver is what a server has applied.
type mserver struct {
	parent  int8 // its czxid; 0 if it does not exist
	changed int8 // its pzxid
	next    int8 // number
	zxid    int8
	nodes   [nodes]mnode
}

type mkind int8

const (
	txnCreate   mkind = iota + 1 // who
	txnRelease                   // who: set and deleted
	txnDelete                    // who
	txnSet                       // who
	txnUnparent                  // the parent is removed
)

type mtxn struct {
	kind mkind
	who  int8
	zxid int8
}

// mphase is what a contender does.
type mphase int8

const (
	phaseStart    mphase = iota
	phaseCreate          // the creation is sent; served next
	phaseCreated         // committed; answered when the session's server has applied it
	phaseParent          // the look at the parent, sent with the creation
	phaseFind            // was its creation carried out?
	phaseList            // to be listed
	phaseOwn             // the watch on its own place is to be set
	phaseAhead           // the watch on its predecessor is to be set
	phaseWait            // both are set
	phaseSync            // its predecessor has released; the server is to catch up
	phaseLook            // first in a listing after a wait; its place to be read behind a sync
	phaseHold            //
	phaseRelease         // sent; served next
	phaseReleased        // committed; to be answered
	phaseUnsure          // was its release carried out?
	phaseLeave           // gives up: to be deleted
	phaseEnd             // it has left, or was told that its place is gone
)

type mmessage int8

const (
	msgReply   mmessage = iota + 1
	msgOwn              // event: its own place was deleted
	msgChanged          // event: its predecessor's data were changed
	msgDeleted          // event: its predecessor was deleted
	msgExpired
)

const inbox = 4

// mclient is a contender and its session.
type mclient struct {
	phase     mphase
	connected bool
	expired   bool // by the leader; the client may not know
	server    int8
	seen      int8 // the latest transaction that a server told it of

	// Its place, as the reply to the creation told it.
	number, czxid int8

	// A reply on its way is decided where the server makes it, and told by the
	// phase that follows it.
	next   mphase
	target int8 // the number of the predecessor; -1: to be listed
	sight  sightKey
	in     [inbox]mmessage
	fired  [2]bool // the watches, as the client knows them: predecessor, own
	change bool    // what the first of them told
	lost   bool    // the connection on which they were set

	// The server's watches.
	watchOwn    bool
	watchParent bool
	ahead       int8 // a number; -1 is none

	// Whether a release may be sent without a look: a watch of this connection would have
	// told that the place is gone. And what the server had applied when it was sent.
	stands bool
	sent   int8

	waited bool // an event or a lost connection has made it look again

	// Ghosts: what no contender can see. Its place was there and first, at a moment
	// in the leader's order. Its place was there when the leader was last asked.
	first, stood bool
}

type sightKey struct {
	place   bool
	version int8
	czxid   int8
}

// mstate is a state of the world. It is comparable: equal states are one.
type mstate struct {
	servers [2]mserver
	pending [12]mtxn // that the follower has not applied
	clients [contenders]mclient

	faults  int8 // that may still happen
	foreign int8 // 0 may come, 1 stands, 2 has gone
}

func (s *mstate) pendings() int {
	n := 0
	for n < len(s.pending) && s.pending[n].kind != 0 {
		n++
	}
	return n
}

// violation is what the model must never reach.
type violation string

func violate(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) }

// model is what is explored. What a waiter concludes is a field so that a test
// can plant a mistake in it.
type model struct {
	outcome func(wake) outcome
	ahead   func(name string, czxid int64, entries []Entry, parent int64) ([]Entry, bool)
	// siblings is how many others stand there beside a new place.
	siblings func(parent, place session.Stat) int
	resumes  func(outcome) bool // whether the waiter waits for the same one again

	// Planted mistakes outside of the conclusions: a lost connection wakes nobody,
	// the waiter's own place is not watched, and the leader is not asked.
	deaf, careless, hasty bool
	blind                 bool // a holder releases without a look, whatever it knows

	seed    maphash.Seed
	visited map[uint64]bool // true while on the way
	ends    int
}

func newModel() *model {
	return &model{
		outcome:  wake.outcome,
		ahead:    predecessorsOf,
		siblings: session.Siblings,
		resumes:  func(o outcome) bool { return o == reconnected },
		seed:     maphash.MakeSeed(),
		visited:  make(map[uint64]bool),
	}
}

func start(faults int8) mstate {
	s := mstate{faults: faults}
	for i := range s.clients {
		s.clients[i] = mclient{connected: true, server: int8(i % 2), target: -1, ahead: -1}
	}
	return s
}

// explore visits every state that can follow s, and returns the way to the first
// violation, or nil.
func (m *model) explore(s mstate) (trace []string, broken violation) {
	defer func() {
		if v, ok := recover().(violation); ok {
			broken = v
		}
	}()
	s.normalize()
	key := maphash.Comparable(m.seed, s)
	if onWay, known := m.visited[key]; known {
		if onWay {
			violate("a circle: it goes on for ever without an event")
		}
		return nil, ""
	}
	m.visited[key] = true
	progress := false
	for _, step := range m.steps(&s) {
		next := s
		trace, broken := m.take(step, next)
		if broken != "" {
			return append([]string{step.String()}, trace...), broken
		}
		progress = progress || !step.fault
	}
	if !progress {
		m.ends++
		if s.settled() {
			s.checkEnd()
		}
	}
	m.visited[key] = false
	return nil, ""
}

func (m *model) take(step mstep, s mstate) (trace []string, broken violation) {
	defer func() {
		if v, ok := recover().(violation); ok {
			broken = v
		}
	}()
	step.do(&s)
	return m.explore(s)
}

// mstep is something that can happen.
type mstep struct {
	who   int // -1 is nobody in particular
	what  string
	fault bool
	do    func(*mstate)
}

// normalize gives states that cannot be told apart the same form: what nothing
// will look at is forgotten, and transactions are numbered by their order alone.
func (s *mstate) normalize() {
	attached := false
	for i := range s.clients {
		c := &s.clients[i]
		if c.phase == phaseEnd {
			*c = mclient{phase: phaseEnd, ahead: -1, target: -1}
			continue
		}
		attached = attached || s.faults > 0 || c.server == follower
		if c.phase != phaseWait && c.next != phaseWait && c.phase != phaseSync {
			c.sight = sightKey{}
		}
		if s.faults == 0 && c.connected {
			c.seen = 0
		}
		switch c.phase {
		case phaseHold, phaseRelease, phaseReleased, phaseUnsure, phaseLeave:
			c.fired, c.change, c.ahead, c.target = [2]bool{}, false, -1, -1
			if c.phase != phaseHold {
				c.watchOwn, c.watchParent, c.stands = false, false, false
			}
			if c.phase != phaseRelease && c.next != phaseRelease {
				c.sent = 0
			}
			for n, msg := range c.in {
				if msg != msgReply && msg != msgExpired && msg != 0 && (msg != msgOwn || c.phase != phaseHold) {
					copy(c.in[n:], c.in[n+1:])
					c.in[inbox-1] = 0
				}
			}
		}
	}
	for !attached && s.pending[0].kind != 0 {
		s.followerApplies()
	}
	var used [128]bool
	s.zxids(func(z *int8) { used[*z] = true })
	var rank [128]int8
	last := int8(0)
	for z := 1; z < len(used); z++ { // 0 is none
		if used[z] {
			last++
			rank[z] = last
		}
	}
	s.zxids(func(z *int8) { *z = rank[*z] })
}

// zxids calls f with every transaction's number in s.
func (s *mstate) zxids(f func(*int8)) {
	for i := range s.servers {
		v := &s.servers[i]
		f(&v.parent)
		f(&v.changed)
		f(&v.zxid)
		for n := range v.nodes {
			if !v.nodes[n].there {
				v.nodes[n] = mnode{}
			}
			f(&v.nodes[n].czxid)
		}
	}
	for n := range s.pending {
		f(&s.pending[n].zxid)
	}
	for i := range s.clients {
		f(&s.clients[i].seen)
		f(&s.clients[i].czxid)
		f(&s.clients[i].sent)
		f(&s.clients[i].sight.czxid)
	}
}

func (s *mstate) followerApplies() {
	t := s.pending[0]
	copy(s.pending[:], s.pending[1:])
	s.pending[len(s.pending)-1] = mtxn{}
	s.apply(follower, t)
}

func (s mstep) String() string {
	if s.who < 0 {
		return s.what
	}
	return fmt.Sprintf("contender %d %s", s.who, s.what)
}

// settled reports whether nothing is on its way.
func (s *mstate) settled() bool {
	for i := range s.clients {
		if !s.clients[i].connected && s.clients[i].phase != phaseEnd {
			return false
		}
	}
	return true
}

// checkEnd: where nothing can happen any more, nobody waits.
func (s *mstate) checkEnd() {
	for i, c := range s.clients {
		if c.phase != phaseEnd {
			violate("contender %d sleeps for ever in phase %d", i, c.phase)
		}
	}
}

// steps returns what can happen in s.
func (m *model) steps(s *mstate) []mstep {
	var steps []mstep
	who := -1
	add := func(what string, do func(*mstate)) { steps = append(steps, mstep{who: who, what: what, do: do}) }
	fault := func(what string, do func(*mstate)) {
		if s.faults > 0 {
			steps = append(steps, mstep{who: who, what: what, fault: true, do: func(s *mstate) { s.faults--; do(s) }})
		}
	}

	// A message that no choice depends on is received at once. Others' steps do not
	// change what it does, and where it is lost with its connection, that is the
	// same as a connection that was lost before the server answered.
	for i := range s.clients {
		if c := &s.clients[i]; c.connected && c.in[0] != 0 && c.phase != phaseWait {
			return append(steps, mstep{who: i, what: "receives a message", do: func(s *mstate) { m.receive(s, i) }})
		}
	}
	if s.pending[0].kind != 0 {
		add("the follower applies a transaction", (*mstate).followerApplies)
	}
	for i := range s.clients {
		c := &s.clients[i]
		if c.phase == phaseEnd {
			continue
		}
		who = i
		switch {
		case !c.connected:
			for server := range s.servers {
				if s.servers[server].zxid >= c.seen {
					add([]string{"connects to the leader", "connects to the follower"}[server], func(s *mstate) { s.connect(i, int8(server)) })
				}
			}
			continue
		case c.in[0] != 0:
			add("receives a message", func(s *mstate) { m.receive(s, i) })
		}
		if c.phase != phaseStart {
			fault("loses its connection", func(s *mstate) { s.disconnect(i) })
		}
		if s.servers[leader].nodes[i].there {
			fault("is expired", func(s *mstate) { s.expire(i) })
			fault("is deleted by another client", func(s *mstate) { s.commit(mtxn{kind: txnDelete, who: int8(i)}) })
		}
		m.requests(s, i, add)
	}
	who = -1
	l := &s.servers[leader]
	if l.parent != 0 && l.children() == 0 {
		fault("the parent is removed", func(s *mstate) { s.commit(mtxn{kind: txnUnparent}) })
	}
	switch {
	case s.foreign == 0:
		fault("a foreign contender comes", func(s *mstate) { s.foreign = 1; s.commit(mtxn{kind: txnCreate, who: foreigner}) })
	case s.foreign == 1 && l.nodes[foreigner].there:
		if l.nodes[foreigner].version == 0 {
			add("the foreign contender's data are changed", func(s *mstate) { s.commit(mtxn{kind: txnSet, who: foreigner}) })
		}
		add("the foreign contender leaves", func(s *mstate) { s.foreign = 2; s.commit(mtxn{kind: txnDelete, who: foreigner}) })
	}
	return steps
}

// requests are the steps of the contender and of the server that serves it.
func (m *model) requests(s *mstate, i int, add func(string, func(*mstate))) {
	c := &s.clients[i]
	replying := c.next != phaseStart // a reply is on its way
	switch {
	case replying:
	case c.phase == phaseStart && i > 0 && s.clients[i-1].phase < phaseCreated:
		// Contenders are alike: they are numbered in the order of their creation.
	case c.phase == phaseStart:
		add("creates its place", func(s *mstate) { s.clients[i].phase = phaseCreate })
	case c.phase == phaseCreate && c.expired, c.phase == phaseRelease && c.expired:
		// The leader refuses it.
	case c.phase == phaseCreate:
		add("its creation is committed", func(s *mstate) {
			s.clients[i].phase = phaseCreated
			s.commit(mtxn{kind: txnCreate, who: int8(i)})
		})
	case c.phase == phaseParent:
		add("the parent is read", func(s *mstate) {
			c, srv := &s.clients[i], s.at(i)
			next := phaseOwn
			c.watchParent = true
			c.stands = srv.parent < c.czxid
			if m.siblings(session.Stat{NumChildren: int32(srv.children()), Pzxid: int64(srv.changed)}, session.Stat{Czxid: int64(c.czxid)}) == 0 {
				next = phaseHold
				s.mustStand(i, "the look at the parent")
			}
			s.reply(i, next)
		})
		add("the parent is not read: the line is known to be long", func(s *mstate) { s.reply(i, phaseOwn) })
		add("the parent is not read: the line is known to be short", func(s *mstate) {
			s.clients[i].target = -1
			s.reply(i, phaseList)
		})
	case c.phase == phaseFind && s.caughtUp(i):
		add("looks for its place", func(s *mstate) {
			c := &s.clients[i]
			if n := s.servers[leader].nodes[i]; n.there {
				c.number, c.czxid, c.target = n.number, n.czxid, n.number-1
				s.reply(i, phaseOwn)
			} else {
				s.reply(i, phaseEnd) // it would be made again; that is another contender
			}
		})
	case c.phase == phaseList:
		add("the line is listed", func(s *mstate) { m.list(s, i) })
	case c.phase == phaseOwn:
		add("the watch on its place is set", func(s *mstate) {
			c, srv := &s.clients[i], s.at(i)
			n, there := srv.called(c.number)
			switch {
			case m.careless:
			case !there || n.czxid > c.czxid:
				s.send(i, msgOwn)
			default:
				c.watchOwn = true
				c.stands, c.watchParent = true, false
			}
			c.phase = phaseAhead
		})
	case c.phase == phaseAhead:
		add("the watch on its predecessor is set", func(s *mstate) {
			c, srv := &s.clients[i], s.at(i)
			n, there := srv.called(c.target)
			if !there {
				c.target = -1
				s.reply(i, phaseList)
				return
			}
			c.ahead = c.target
			c.sight = sightKey{n.czxid != srv.nodes[foreigner].czxid, n.version, n.czxid}
			s.reply(i, phaseWait)
		})
	case c.phase == phaseWait:
		wakes := func(what string, why reason) {
			add(what, func(s *mstate) { m.wake(s, i, why) })
		}
		if c.fired[0] {
			wakes("wakes by its predecessor's watch", predecessorFired)
		}
		if c.fired[1] {
			wakes("wakes by its own watch", ownFired)
		}
		if c.lost && !m.deaf {
			wakes("wakes by the lost connection", connectionLost)
		}
		if s.faults > 0 {
			add("gives up", func(s *mstate) { s.faults--; s.clients[i].phase = phaseLeave })
		}
	case c.phase == phaseSync && s.caughtUp(i):
		add("is told that its server has caught up", func(s *mstate) {
			s.clients[i].stood = s.servers[leader].nodes[i].there
			s.reply(i, phaseSync)
		})
	case c.phase == phaseLook && s.caughtUp(i):
		add("its place is read behind a sync", func(s *mstate) {
			c := &s.clients[i]
			n, there := s.servers[leader].called(c.number)
			if c.stood = s.servers[leader].nodes[i].there; there && n.czxid == c.czxid {
				s.reply(i, phaseHold)
			} else {
				s.reply(i, phaseEnd)
			}
		})
	case c.phase == phaseHold:
		add("releases", func(s *mstate) {
			c := &s.clients[i]
			if c.phase = phaseUnsure; c.stands || m.blind {
				c.phase, c.sent = phaseRelease, s.at(i).zxid
				if c.in[0] != 0 {
					c.sent = 0 // it is being told
				}
			}
		})
	case c.phase == phaseRelease:
		add("its release is committed", func(s *mstate) {
			c := &s.clients[i]
			if n, there := s.servers[leader].called(c.number); there && n.czxid != c.czxid && c.sent >= n.czxid {
				violate("contender %d releases the place of another", i)
			}
			if !s.servers[leader].nodes[i].there {
				s.reply(i, phaseEnd)
				return
			}
			c.phase = phaseReleased
			s.commit(mtxn{kind: txnRelease, who: int8(i)})
		})
	case c.phase == phaseUnsure:
		add("looks whether its release was carried out", func(s *mstate) {
			c := &s.clients[i]
			if n, there := s.at(i).called(c.number); there && n.czxid == c.czxid {
				c.sent = s.at(i).zxid
				s.reply(i, phaseRelease)
			} else {
				s.reply(i, phaseEnd)
			}
		})
	case c.phase == phaseLeave:
		add("its place is deleted", func(s *mstate) {
			if s.servers[leader].nodes[i].there {
				s.commit(mtxn{kind: txnDelete, who: int8(i)})
			}
			s.clients[i].phase = phaseEnd
		})
	}
}

// list is the look at the whole line.
func (m *model) list(s *mstate, i int) {
	c, srv := &s.clients[i], s.at(i)
	var entries []Entry
	for number := range srv.next {
		if _, there := srv.called(number); there {
			entries = append(entries, Entry{Name: name(number), Sequence: int32(number)})
		}
	}
	ahead, stands := m.ahead(name(c.number), int64(c.czxid), entries, int64(srv.parent))
	switch {
	case srv.parent == 0 || !stands:
		s.reply(i, phaseEnd)
	case len(ahead) == 0 && c.waited && !m.hasty:
		s.reply(i, phaseLook)
	case len(ahead) == 0:
		s.mustStand(i, "the listing")
		s.reply(i, phaseHold)
	default:
		c.target = int8(ahead[len(ahead)-1].Sequence)
		s.reply(i, phaseOwn)
	}
}

func name(number int8) string { return fmt.Sprint(number) }

// wake is what the waiter does when something has woken it.
func (m *model) wake(s *mstate, i int, why reason) {
	c := &s.clients[i]
	if o := m.conclusion(c, why, false); o != handed {
		m.goOn(s, i, o)
		return
	}
	// What else has happened is looked at when the server has caught up.
	c.fired[0], c.phase = false, phaseSync
	switch {
	case c.lost:
		m.goOn(s, i, reconnected) // there is nothing to ask on
	case m.hasty:
		c.stood = s.servers[leader].nodes[i].there
		m.synced(s, i)
	}
}

// synced is what the waiter does when its server has caught up.
func (m *model) synced(s *mstate, i int) {
	c := &s.clients[i]
	m.goOn(s, i, m.conclusion(c, predecessorFired, c.fired[1]))
}

func (m *model) conclusion(c *mclient, why reason, gone bool) outcome {
	return m.outcome(wake{
		why:         why,
		predecessor: sight{c.sight.place, int32(c.sight.version), int64(c.sight.czxid)},
		mine:        int64(c.czxid),
		changed:     c.change,
		gone:        gone,
	})
}

func (m *model) goOn(s *mstate, i int, o outcome) {
	c := &s.clients[i]
	c.fired[0], c.change, c.lost = false, false, false
	if o == reconnected || o == changed {
		c.waited = true
	}
	switch {
	case o == handed:
		s.hold(i)
	case m.resumes(o):
		c.phase = phaseOwn
	default:
		c.target, c.phase = -1, phaseList
	}
}

// hold has the contender take itself for the holder.
func (s *mstate) hold(i int) {
	c := &s.clients[i]
	if !c.first {
		violate("contender %d holds, and never stood first", i)
	}
	if (c.phase == phaseSync || c.phase == phaseLook) && !c.stood {
		violate("contender %d holds, and its place was gone when the leader was asked", i)
	}
	c.phase = phaseHold
}

// mustStand: the server whose answer has the contender hold has its place.
func (s *mstate) mustStand(i int, answer string) {
	if !s.at(i).nodes[i].there {
		violate("contender %d holds by %s, and its place was gone", i, answer)
	}
}

// caughtUp reports whether the contender's server has applied all transactions, so
// that it answers a sync.
func (s *mstate) caughtUp(i int) bool { return s.clients[i].server == leader || s.pendings() == 0 }

func (s *mstate) at(i int) *mserver { return &s.servers[s.clients[i].server] }

func (v *mserver) children() int {
	n := 0
	for _, node := range v.nodes {
		if node.there {
			n++
		}
	}
	return n
}

// called returns the znode with a number, whoever's it is.
func (v *mserver) called(number int8) (mnode, bool) {
	for _, n := range v.nodes {
		if n.there && n.number == number {
			return n, true
		}
	}
	return mnode{}, false
}

// commit has the leader carry out a transaction.
func (s *mstate) commit(t mtxn) {
	n := s.pendings()
	if n == len(s.pending) {
		violate("the model's follower lags by more than it has room for")
	}
	t.zxid = s.servers[leader].zxid + 1
	s.pending[n] = t
	s.apply(leader, t)
	first := int8(-1)
	for i, node := range s.servers[leader].nodes {
		if node.there && (first < 0 || node.number < s.servers[leader].nodes[first].number) {
			first = int8(i)
		}
	}
	if first >= 0 && first != foreigner {
		s.clients[first].first = true
	}
}

// apply has a server apply a transaction, tell those who watch, and answer.
func (s *mstate) apply(server int8, t mtxn) {
	v := &s.servers[server]
	v.zxid = t.zxid
	if t.kind == txnUnparent {
		v.parent, v.next = 0, 0
		for i := range s.clients {
			if c := &s.clients[i]; c.server == server && c.connected && c.watchParent {
				c.watchParent = false
				s.send(i, msgOwn)
			}
		}
		return
	}
	n := &v.nodes[t.who]
	switch t.kind {
	case txnCreate:
		if v.parent == 0 {
			v.parent = v.zxid
		}
		*n = mnode{there: true, number: v.next, czxid: v.zxid}
		v.next++
		v.changed = v.zxid
	case txnSet:
		n.version++
		s.fire(server, n.number, msgChanged)
		return
	case txnRelease:
		s.fire(server, n.number, msgChanged)
		fallthrough
	case txnDelete:
		number := n.number
		n.there = false
		v.changed = v.zxid
		s.fire(server, number, msgDeleted)
	}
	if t.who == foreigner {
		return
	}
	c := &s.clients[t.who]
	if c.server != server || !c.connected {
		return
	}
	switch {
	case c.expired && t.kind == txnDelete:
		s.send(int(t.who), msgExpired)
	case c.phase == phaseCreated && t.kind == txnCreate:
		c.number, c.czxid, c.target = n.number, n.czxid, n.number-1
		c.phase = phaseParent // the two replies are received one after the other; the first tells nothing
	case c.phase == phaseReleased && t.kind == txnRelease:
		s.reply(int(t.who), phaseEnd)
	}
}

// fire tells the sessions of a server of a change, by operation, in order.
func (s *mstate) fire(server, number int8, event mmessage) {
	for i := range s.clients {
		c := &s.clients[i]
		if c.server != server || !c.connected {
			continue
		}
		if c.ahead == number {
			c.ahead = -1
			s.send(i, event)
		}
		if c.watchOwn && c.number == number && event == msgDeleted {
			c.watchOwn = false
			s.send(i, msgOwn)
		}
	}
}

// reply sends the contender an answer, with which it goes on in that phase.
func (s *mstate) reply(i int, next mphase) {
	s.clients[i].next = next
	s.send(i, msgReply)
}

func (s *mstate) send(i int, msg mmessage) {
	c := &s.clients[i]
	for n := range c.in {
		if c.in[n] == 0 {
			c.in[n] = msg
			return
		}
	}
	violate("the model's connection holds more than it has room for")
}

// receive has the client take the next message of its connection.
func (m *model) receive(s *mstate, i int) {
	c := &s.clients[i]
	msg := c.in[0]
	copy(c.in[:], c.in[1:])
	c.in[inbox-1] = 0
	c.seen = s.at(i).zxid
	switch msg {
	case msgReply:
		next := c.next
		c.next = phaseStart
		switch next {
		case phaseHold:
			s.hold(i)
		case phaseSync:
			m.synced(s, i)
		default:
			c.phase = next
		}
	case msgOwn:
		c.fired[1], c.stands = true, false
	case msgChanged, msgDeleted:
		c.fired[0], c.change = true, msg == msgChanged
	case msgExpired:
		c.phase = phaseEnd
	}
}

// disconnect breaks the contender's connection: what was in flight is lost, and
// so are the server's watches.
func (s *mstate) disconnect(i int) {
	c := &s.clients[i]
	c.connected, c.watchOwn, c.watchParent, c.stands, c.ahead = false, false, false, false, -1
	c.in, c.next = [inbox]mmessage{}, phaseStart
	c.lost = true
}

// connect is the contender's session at a server again.
func (s *mstate) connect(i int, server int8) {
	c := &s.clients[i]
	if c.expired {
		c.phase = phaseEnd
		return
	}
	c.connected, c.server, c.seen = true, server, s.servers[server].zxid
	switch c.phase {
	case phaseCreate, phaseCreated, phaseParent, phaseFind:
		c.phase = phaseFind
	case phaseRelease, phaseReleased, phaseUnsure:
		c.phase = phaseUnsure
	case phaseOwn, phaseAhead, phaseSync:
		c.phase = phaseOwn
	}
	if c.phase != phaseWait {
		c.lost = false
	}
}

func (s *mstate) expire(i int) {
	s.clients[i].expired = true
	s.commit(mtxn{kind: txnDelete, who: int8(i)})
}

// modelFaults is the largest number of faults in a run of the model: 1 with every
// run of the tests, 2 with `make test-model`.
func modelFaults(t *testing.T) int8 {
	value := os.Getenv("ZKRECIPES_MODEL_FAULTS")
	if value == "" {
		return 1
	}
	n, err := strconv.ParseInt(value, 10, 8)
	if err != nil {
		t.Fatalf("ZKRECIPES_MODEL_FAULTS is a number of faults, not %q", value)
	}
	return int8(n)
}

// withoutRaceDetector leaves the model to the part of make test that runs without it: it
// has no goroutines, and takes six times as long with it.
func withoutRaceDetector(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("SKIPPED: make test runs it without the race detector")
	}
}

// TestHandoffModel holds what package line promises of handoff. A contender that
// holds has been first in the leader's order, and its place was there, for the
// leader too when it was asked. No waiter
// sleeps in a state that nothing can follow. No contender goes round in circles.
func TestHandoffModel(t *testing.T) {
	withoutRaceDetector(t)
	for faults := range modelFaults(t) + 1 {
		m := newModel()
		began := time.Now()
		for _, first := range starts(faults) {
			if trace, broken := m.explore(first); broken != "" {
				t.Fatalf("with %d faults: %s, after\n  %s", faults, broken, strings.Join(trace, "\n  "))
			}
		}
		t.Logf("%d contenders, at most %d faults: %d states in %s", contenders, faults, len(m.visited), time.Since(began).Round(time.Millisecond))
	}
}

// starts are the states to begin in. With one fault the sessions are spread over
// the servers in every way. With more, which takes long, in one way only.
func starts(faults int8) []mstate {
	if faults > 1 {
		return []mstate{start(faults)}
	}
	var all []mstate
	for spread := range 1 << contenders {
		s := start(faults)
		for i := range s.clients {
			s.clients[i].server = int8(spread >> i & 1)
		}
		all = append(all, s)
	}
	return all
}

// TestHandoffModelFindsMistakes plants a mistake in each guard.
func TestHandoffModelFindsMistakes(t *testing.T) {
	withoutRaceDetector(t)
	concludes := func(change func(*wake)) func(*model) {
		return func(m *model) {
			m.outcome = func(w wake) outcome {
				change(&w)
				return w.outcome()
			}
		}
	}
	for _, tt := range []struct {
		mistake string
		faults  int8
		plant   func(*model)
	}{
		{"its own place's deletion is not looked at", 1, concludes(func(w *wake) { w.gone = false })},
		{"a deletion of the predecessor is taken for its release", 1, concludes(func(w *wake) { w.changed = w.changed || w.why == predecessorFired })},
		{"anybody's change of data is taken for a release", 1, concludes(func(w *wake) { w.predecessor.bare = true })},
		{"a lost connection wakes nobody", 1, func(m *model) { m.deaf = true }},
		{"the leader is not asked before a grant after a wait", 1, func(m *model) { m.hasty = true }},
		{"its own place is not watched", 1, func(m *model) { m.careless = true }},
		{"the same one is waited for again, whatever happened", 1, func(m *model) { m.resumes = func(outcome) bool { return true } }},
		{"the line is listed in its order, but its own place not looked for", 1, func(m *model) {
			m.ahead = func(_ string, czxid int64, entries []Entry, parent int64) ([]Entry, bool) {
				return entries[:max(0, len(entries)-1)], parent <= czxid
			}
		}},
		{"a listing of another parent counts", 2, func(m *model) {
			m.ahead = func(name string, czxid int64, entries []Entry, _ int64) ([]Entry, bool) {
				return predecessorsOf(name, czxid, entries, 0)
			}
		}},
		{"a holder releases without a look, whatever it was told", 2, func(m *model) { m.blind = true }},
		{"the parent's only child is taken for its own", 2, func(m *model) {
			m.siblings = func(parent, _ session.Stat) int { return int(parent.NumChildren) - 1 }
		}},
	} {
		t.Run(tt.mistake, func(t *testing.T) {
			m := newModel()
			tt.plant(m)
			trace, broken := m.explore(start(tt.faults))
			if broken == "" {
				t.Fatalf("not found in %d states", len(m.visited))
			}
			t.Logf("found after %d states: %s", len(m.visited), broken)
			t.Logf("by\n  %s", strings.Join(trace, "\n  "))
		})
	}
}

// TestHandoffModelNeedsNoSpareGuard names the guards that are a second defence. No
// run of the model needs them. It assumes that only a place's session writes to
// it. A waiter is told that its place is gone before the name is given again. And
// on a connection that is lost the leader cannot be asked.
func TestHandoffModelNeedsNoSpareGuard(t *testing.T) {
	withoutRaceDetector(t)
	for guard, change := range map[string]func(*wake){
		"the predecessor was not written before": func(w *wake) { w.predecessor.version = 0 },
		"the predecessor is older":               func(w *wake) { w.predecessor.czxid = 0 },
		"the connection is not lost": func(w *wake) {
			if w.why == connectionLost {
				w.why, w.changed = predecessorFired, true
			}
		},
	} {
		m := newModel()
		m.outcome = func(w wake) outcome {
			change(&w)
			return w.outcome()
		}
		if _, broken := m.explore(start(1)); broken != "" {
			t.Errorf("%s: needed: %s", guard, broken)
		}
	}
}
