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
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// This file is a model of handoff, explored exhaustively: three contenders, a limited number of
// faults, and every order of what clients, servers and the network can do. It does not model
// what a waiter concludes: like the product, it calls the functions of handoff.go.
//
// Modelled:
//
//   - a leader, and a follower that applies the leader's transactions late;
//   - for each session its server, its connection with the messages in flight, its watches, and
//     an expiry that the client learns late;
//   - creation with or without a read of the parent, the computed name of the predecessor,
//     listings, both watches, release, and giving up;
//   - a connection that is lost before or after a commit, or before the reply;
//   - a place that another client deletes;
//   - the parent deleted and created again, so that names are used again;
//   - a contender of another library, whose data change.
//
// Not modelled:
//
//   - the session's own deadline, which package lease argues;
//   - a request that a server forwards after its client has connected elsewhere;
//   - exhausted numbers;
//   - a session with several contenders, and several wait queues;
//   - a deletion in flight when its name is used again: the contender that has the name handles
//     it as a deletion by another client.
//
// Assumed, as in the package comment: when the parent is created again, earlier releases have
// arrived, or their senders were notified.

const (
	contenders = 3
	foreigner  = contenders // the index of the znode of another library
	nodes      = contenders + 1
	leader     = 0
	follower   = 1
)

// mnode is a znode below the path of the wait queue.
type mnode struct {
	there   bool
	number  int8
	czxid   int8
	version int8
}

// mserver is the state that a server has applied.
type mserver struct {
	parent  int8 // its czxid; 0 if it does not exist
	changed int8 // its pzxid
	next    int8 // number
	zxid    int8
	nodes   [nodes]mnode
}

type mkind int8

const (
	txnCreate   mkind = iota + 1 // the place of who is created
	txnRelease                   // the place of who is set and deleted
	txnDelete                    // the place of who is deleted
	txnSet                       // the data of who are set
	txnUnparent                  // the parent is deleted
)

type mtxn struct {
	kind mkind
	who  int8
	zxid int8
}

// mphase is the next step of a contender.
type mphase int8

const (
	phaseStart    mphase = iota
	phaseCreate          // the creation is sent; served next
	phaseCreated         // committed; answered when the session's server has applied it
	phaseParent          // the read of the parent, sent with the creation
	phaseFind            // search after a lost reply to the creation
	phaseList            // list the path
	phaseOwn             // set the watch on its own place
	phaseAhead           // set the watch on its predecessor
	phaseWait            // both watches are set
	phaseSync            // its predecessor has released; wait until the server has caught up
	phaseLook            // first in a listing after a wait; read its place after a sync
	phaseHold            //
	phaseRelease         // sent; served next
	phaseReleased        // committed; to be answered
	phaseUnsure          // read after a lost reply to the release
	phaseLeave           // gives up: delete its place
	phaseEnd             // it has left, or knows that its place is deleted
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
	expired   bool // the leader has expired the session; the client may not know yet
	server    int8
	seen      int8 // the latest transaction that a server has reported to it

	// Its place, as in the reply to the creation.
	number, czxid int8

	// A reply is determined when the server sends it. The phase that follows represents it.
	next   mphase
	target int8 // the number of the predecessor; -1: list the path
	sight  sightKey
	in     [inbox]mmessage
	fired  [2]bool // the watches, as the client knows them: predecessor, own
	change bool    // the first of them has reported a change of data
	lost   bool    // the connection on which they were set

	// The server's watches.
	watchOwn    bool
	watchParent bool
	ahead       int8 // a number; -1: no watch

	// Whether a release may be sent without a read: a watch of this connection would have
	// reported that the place is deleted. And what the server had applied when the release was
	// sent.
	watched bool
	sent    int8

	waited bool // an event or a lost connection has made it read again

	// Ghost variables, which no contender can see. At one moment in the leader's order, its
	// place existed and was first. Its place existed at the last sync with the leader.
	first, existed bool
}

type sightKey struct {
	place   bool
	version int8
	czxid   int8
}

// mstate is a state of the whole system. It is comparable.
type mstate struct {
	servers [2]mserver
	pending [12]mtxn // not applied by the follower yet
	clients [contenders]mclient

	faults  int8 // how many faults may still happen
	foreign int8 // the third-party contender: 0 may join, 1 exists, 2 has left
}

func (s *mstate) pendings() int {
	n := 0
	for n < len(s.pending) && s.pending[n].kind != 0 {
		n++
	}
	return n
}

// violation is a state that the model must never reach.
type violation string

func violate(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) }

// model is the model to explore. A waiter's conclusions are fields, so that a test can plant a
// mistake in them.
type model struct {
	outcome func(wake) outcome
	ahead   func(name string, czxid int64, entries []Entry, parent int64) ([]Entry, bool)
	// siblings returns the number of other children beside a new place.
	siblings func(parent, place session.Stat) int
	resumes  func(outcome) bool // whether the waiter waits for the same predecessor again

	// Planted mistakes outside of the conclusions: a lost connection wakes no waiter, the
	// waiter's own place is not watched, and the leader is not asked.
	deaf, careless, hasty bool
	blind                 bool // a holder always releases without a read

	seed    maphash.Seed
	visited map[uint64]bool // true while on the current path
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

// explore visits every state that can follow s. It returns the path to the first violation, or
// nil.
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
			violate("a loop: it continues forever without an event")
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

// mstep is a step that can happen.
type mstep struct {
	who   int // -1: no contender
	what  string
	fault bool
	do    func(*mstate)
}

// normalize gives equivalent states the same form: it clears what no later step reads, and
// numbers transactions by their order.
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
				c.watchOwn, c.watchParent, c.watched = false, false, false
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
	for z := 1; z < len(used); z++ { // 0 is no transaction
		if used[z] {
			last++
			rank[z] = last
		}
	}
	s.zxids(func(z *int8) { *z = rank[*z] })
}

// zxids calls f with the number of each transaction in s.
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

// settled reports whether nothing is in flight.
func (s *mstate) settled() bool {
	for i := range s.clients {
		if !s.clients[i].connected && s.clients[i].phase != phaseEnd {
			return false
		}
	}
	return true
}

// checkEnd checks that no contender waits in a state without a next step.
func (s *mstate) checkEnd() {
	for i, c := range s.clients {
		if c.phase != phaseEnd {
			violate("contender %d sleeps forever in phase %d", i, c.phase)
		}
	}
}

// steps returns the steps that can follow s.
func (m *model) steps(s *mstate) []mstep {
	var steps []mstep
	who := -1
	add := func(what string, do func(*mstate)) { steps = append(steps, mstep{who: who, what: what, do: do}) }
	fault := func(what string, do func(*mstate)) {
		if s.faults > 0 {
			steps = append(steps, mstep{who: who, what: what, fault: true, do: func(s *mstate) { s.faults--; do(s) }})
		}
	}

	// A message on which no choice depends is received at once. Steps of others do not change
	// its effect. If the message is lost with its connection, the result is the same as if the
	// connection had been lost before the server answered.
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
		fault("the parent is deleted", func(s *mstate) { s.commit(mtxn{kind: txnUnparent}) })
	}
	switch {
	case s.foreign == 0:
		fault("a third-party contender joins", func(s *mstate) { s.foreign = 1; s.commit(mtxn{kind: txnCreate, who: foreigner}) })
	case s.foreign == 1 && l.nodes[foreigner].there:
		if l.nodes[foreigner].version == 0 {
			add("the third-party contender's data are changed", func(s *mstate) { s.commit(mtxn{kind: txnSet, who: foreigner}) })
		}
		add("the third-party contender leaves", func(s *mstate) { s.foreign = 2; s.commit(mtxn{kind: txnDelete, who: foreigner}) })
	}
	return steps
}

// requests adds the steps of the contender and of the server that serves it.
func (m *model) requests(s *mstate, i int, add func(string, func(*mstate))) {
	c := &s.clients[i]
	replying := c.next != phaseStart // a reply is in flight
	switch {
	case replying:
	case c.phase == phaseStart && i > 0 && s.clients[i-1].phase < phaseCreated:
		// Contenders are symmetric: they are numbered in the order of their creation.
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
			c.watched = srv.parent < c.czxid
			if m.siblings(session.Stat{NumChildren: int32(srv.children()), Pzxid: int64(srv.changed)}, session.Stat{Czxid: int64(c.czxid)}) == 0 {
				next = phaseHold
				s.mustExist(i, "the read of the parent")
			}
			s.reply(i, next)
		})
		add("the parent is not read: the wait queue is known to be long", func(s *mstate) { s.reply(i, phaseOwn) })
		add("the parent is not read: the wait queue is known to be short", func(s *mstate) {
			s.clients[i].target = -1
			s.reply(i, phaseList)
		})
	case c.phase == phaseFind && s.caughtUp(i):
		add("searches for its place", func(s *mstate) {
			c := &s.clients[i]
			if n := s.servers[leader].nodes[i]; n.there {
				c.number, c.czxid, c.target = n.number, n.czxid, n.number-1
				s.reply(i, phaseOwn)
			} else {
				s.reply(i, phaseEnd) // the contender would create another place, which the model treats as another contender
			}
		})
	case c.phase == phaseList:
		add("the path is listed", func(s *mstate) { m.list(s, i) })
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
				c.watched, c.watchParent = true, false
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
		add("learns that its server has caught up", func(s *mstate) {
			s.clients[i].existed = s.servers[leader].nodes[i].there
			s.reply(i, phaseSync)
		})
	case c.phase == phaseLook && s.caughtUp(i):
		add("its place is read after a sync", func(s *mstate) {
			c := &s.clients[i]
			n, there := s.servers[leader].called(c.number)
			if c.existed = s.servers[leader].nodes[i].there; there && n.czxid == c.czxid {
				s.reply(i, phaseHold)
			} else {
				s.reply(i, phaseEnd)
			}
		})
	case c.phase == phaseHold:
		add("releases", func(s *mstate) {
			c := &s.clients[i]
			if c.phase = phaseUnsure; c.watched || m.blind {
				c.phase, c.sent = phaseRelease, s.at(i).zxid
				if c.in[0] != 0 {
					c.sent = 0 // the deletion is being reported to it
				}
			}
		})
	case c.phase == phaseRelease:
		add("its release is committed", func(s *mstate) {
			c := &s.clients[i]
			if n, there := s.servers[leader].called(c.number); there && n.czxid != c.czxid && c.sent >= n.czxid {
				violate("contender %d releases the place of another contender", i)
			}
			if !s.servers[leader].nodes[i].there {
				s.reply(i, phaseEnd)
				return
			}
			c.phase = phaseReleased
			s.commit(mtxn{kind: txnRelease, who: int8(i)})
		})
	case c.phase == phaseUnsure:
		add("reads whether its release was committed", func(s *mstate) {
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

// list is the contender's listing of the path.
func (m *model) list(s *mstate, i int) {
	c, srv := &s.clients[i], s.at(i)
	var entries []Entry
	for number := range srv.next {
		if _, there := srv.called(number); there {
			entries = append(entries, Entry{Name: name(number), Sequence: int32(number)})
		}
	}
	ahead, valid := m.ahead(name(c.number), int64(c.czxid), entries, int64(srv.parent))
	switch {
	case srv.parent == 0 || !valid:
		s.reply(i, phaseEnd)
	case len(ahead) == 0 && c.waited && !m.hasty:
		s.reply(i, phaseLook)
	case len(ahead) == 0:
		s.mustExist(i, "the listing")
		s.reply(i, phaseHold)
	default:
		c.target = int8(ahead[len(ahead)-1].Sequence)
		s.reply(i, phaseOwn)
	}
}

func name(number int8) string { return fmt.Sprint(number) }

// wake handles an event that wakes the waiter.
func (m *model) wake(s *mstate, i int, why reason) {
	c := &s.clients[i]
	if o := m.conclusion(c, why, false); o != handed {
		m.proceed(s, i, o)
		return
	}
	// Other events are handled when the server has caught up.
	c.fired[0], c.phase = false, phaseSync
	switch {
	case c.lost:
		m.proceed(s, i, reconnected) // there is no connection to ask on
	case m.hasty:
		c.existed = s.servers[leader].nodes[i].there
		m.synced(s, i)
	}
}

// synced continues when the waiter's server has caught up.
func (m *model) synced(s *mstate, i int) {
	c := &s.clients[i]
	m.proceed(s, i, m.conclusion(c, predecessorFired, c.fired[1]))
}

func (m *model) conclusion(c *mclient, why reason, gone bool) outcome {
	return m.outcome(wake{
		why:         why,
		predecessor: predecessorState{c.sight.place, int32(c.sight.version), int64(c.sight.czxid)},
		mine:        int64(c.czxid),
		changed:     c.change,
		gone:        gone,
	})
}

func (m *model) proceed(s *mstate, i int, o outcome) {
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

// hold makes the contender consider itself the holder.
func (s *mstate) hold(i int) {
	c := &s.clients[i]
	if !c.first {
		violate("contender %d holds, and was never first", i)
	}
	if (c.phase == phaseSync || c.phase == phaseLook) && !c.existed {
		violate("contender %d holds, and its place was deleted at the last sync with the leader", i)
	}
	c.phase = phaseHold
}

// mustExist checks that the server whose answer makes the contender hold has its place.
func (s *mstate) mustExist(i int, answer string) {
	if !s.at(i).nodes[i].there {
		violate("contender %d holds by %s, and its place was deleted", i, answer)
	}
}

// caughtUp reports whether the contender's server has applied all transactions, so that it
// answers a sync.
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

// called returns the znode with a number, whichever contender it belongs to.
func (v *mserver) called(number int8) (mnode, bool) {
	for _, n := range v.nodes {
		if n.there && n.number == number {
			return n, true
		}
	}
	return mnode{}, false
}

// commit makes the leader commit a transaction.
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

// apply makes a server apply a transaction, fire watches, and answer.
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
		c.phase = phaseParent // the two replies are received one after the other; the first shows nothing
	case c.phase == phaseReleased && t.kind == txnRelease:
		s.reply(int(t.who), phaseEnd)
	}
}

// fire fires watches of a server's sessions, operation by operation, in order.
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

// reply sends the contender an answer. It then continues in that phase.
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

// receive makes the client receive the next message of its connection.
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
		c.fired[1], c.watched = true, false
	case msgChanged, msgDeleted:
		c.fired[0], c.change = true, msg == msgChanged
	case msgExpired:
		c.phase = phaseEnd
	}
}

// disconnect ends the contender's connection. Messages in flight and the server's watches are lost.
func (s *mstate) disconnect(i int) {
	c := &s.clients[i]
	c.connected, c.watchOwn, c.watchParent, c.watched, c.ahead = false, false, false, false, -1
	c.in, c.next = [inbox]mmessage{}, phaseStart
	c.lost = true
}

// connect connects the contender's session to a server again.
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

// modelFaults is the largest number of faults in a run of the model: 1 in each run of the
// tests, 2 in `.ci/suite model`.
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

// withoutRaceDetector skips the model in race builds; make test also runs it without. The model
// has no goroutines, and takes six times as long with the race detector.
func withoutRaceDetector(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("SKIPPED: make test runs it without the race detector")
	}
}

// TestHandoffModel checks what package line promises about handoff. When a contender holds, its
// place has been first in the leader's order, and existed at the last sync with the leader. No
// waiter sleeps in a state without a next step. No contender loops.
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

// starts returns the initial states. With one fault, the sessions are spread over the servers
// in every way. With more, which takes long, and with -short, in one way only.
func starts(faults int8) []mstate {
	if faults > 1 || testing.Short() {
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
	testall.Require(t) // this test tests the model
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
		{"the deletion of its own place is ignored", 1, concludes(func(w *wake) { w.gone = false })},
		{"a deletion of the predecessor is taken for its release", 1, concludes(func(w *wake) { w.changed = w.changed || w.why == predecessorFired })},
		{"any client's change of data is taken for a release", 1, concludes(func(w *wake) { w.predecessor.bare = true })},
		{"a lost connection wakes no waiter", 1, func(m *model) { m.deaf = true }},
		{"the leader is not asked before a grant after a wait", 1, func(m *model) { m.hasty = true }},
		{"its own place is not watched", 1, func(m *model) { m.careless = true }},
		{"it always waits for the same predecessor again", 1, func(m *model) { m.resumes = func(outcome) bool { return true } }},
		{"the listing is sorted, but its own place is not searched for", 1, func(m *model) {
			m.ahead = func(_ string, czxid int64, entries []Entry, parent int64) ([]Entry, bool) {
				return entries[:max(0, len(entries)-1)], parent <= czxid
			}
		}},
		{"a listing of another parent is valid", 2, func(m *model) {
			m.ahead = func(name string, czxid int64, entries []Entry, _ int64) ([]Entry, bool) {
				return predecessorsOf(name, czxid, entries, 0)
			}
		}},
		{"a holder always releases without a read", 2, func(m *model) { m.blind = true }},
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

// TestHandoffModelNeedsNoSpareGuard lists the guards that are a second line of defence, which
// no run of the model needs. The model assumes that only a place's session writes to it, and
// that a waiter is notified that its place is deleted before the name is used again. And on a
// lost connection the leader cannot be asked.
func TestHandoffModelNeedsNoSpareGuard(t *testing.T) {
	testall.Require(t)
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
