package audit

import (
	"bytes"
	"cmp"
	"fmt"
	gopath "path"
	"regexp"
	"slices"
)

// Queue is a queue: the elements at one path.
type Queue struct {
	Path    string `json:"path"`
	Dialect string `json:"dialect"`

	Put      int `json:"put"`
	Taken    int `json:"taken"`    // removed by a consumer in one step
	Received int `json:"received"` // claimed by a consumer of zkrecipes
	Again    int `json:"again"`    // of these, elements that had been received before
	Acked    int `json:"acked"`
	Returned int `json:"returned"` // by the consumer
	Expired  int `json:"expired"`  // claims that ended with the consumer's session
	Dead     int `json:"dead"`     // became dead letters
	Deleted  int `json:"deleted"`  // otherwise, such as by an operator

	Age     Durations `json:"age"`     // of elements that were taken or acknowledged, since they were put
	Left    int       `json:"left"`    // elements at the end
	Claimed int       `json:"claimed"` // of these
}

// Decision is the decision of a two-phase commit.
type Decision struct {
	Moment
	Path    string `json:"path"`
	ID      string `json:"id"`
	Text    string `json:"decision"` // commit, or abort and the reason
	Session string `json:"session_id"`
}

// queues is the state of all queues, and of the decisions, while the logs are read.
type queues struct {
	byPath  map[string]*queue
	claims  map[string]*claim
	owned   map[int64]map[string]bool // the paths of claims and ephemeral elements, by session
	decided map[string][2]string      // the text and the ID, by the path of the transaction
	alone   bool                      // the transaction has only one change
}

type queue struct {
	Queue
	elements map[string]*element
}

type element struct {
	put      int64 // milliseconds
	received int
	claim    *claim
	holder   int64 // the session of its last claim
	freed    int64 // the zxid at which that claim has ended
	buried   bool  // there is a dead letter
}

type claim struct {
	queue   *queue
	name    string // of the element
	session int64
}

var (
	elementName = regexp.MustCompile(`^(queue-|qn-|entry-)(?:[0-9]+-)?(?:[0-9]{10}|-[0-9]{9,10})$`)
	claimName   = regexp.MustCompile(`^(.+)-[0-9]+$`)
	libraries   = map[string]string{"queue-": "zookeeper", "qn-": "curator", "entry-": "kazoo"} // by the prefix of elements
)

const (
	claimsName   = "claims"   // the parent of claims
	decisionName = "decision" // of a two-phase commit
)

// createOther applies the creation of a znode that does not belong to a line.
func (a *auditor) createOther(path string, data []byte, ephemeral bool) {
	dir, base := gopath.Dir(path), gopath.Base(path)
	above := a.queues.byPath[gopath.Dir(dir)]
	claimed, element := claimName.FindStringSubmatch(base), elementName.FindStringSubmatch(base)
	switch {
	case gopath.Base(dir) == claimsName && claimed != nil && above != nil:
		a.receive(path, above, claimed[1])
	case gopath.Base(dir) == "dead" && element != nil && above != nil:
		if e := above.elements[base]; e != nil {
			e.buried = true
		}
		return
	case element != nil:
		a.putElement(dir, base, libraries[element[1]])
	case base == decisionName:
		a.decide(dir, data)
		return
	default:
		return
	}
	if session := a.header.Session; ephemeral {
		if a.queues.owned[session] == nil {
			a.queues.owned[session] = map[string]bool{}
		}
		a.queues.owned[session][path] = true
	}
}

func (a *auditor) putElement(dir, name, dialect string) {
	q := a.queues.byPath[dir]
	if q == nil {
		q = &queue{Queue: Queue{Path: dir, Dialect: dialect}, elements: map[string]*element{}}
		a.queues.byPath[dir] = q
	}
	q.elements[name] = &element{put: a.header.Time}
	if !a.loading {
		q.Put++
	}
}

func (a *auditor) receive(path string, q *queue, name string) {
	e := q.elements[name]
	if e == nil {
		return
	}
	if e.claim != nil {
		a.finding(TwoClaims, q.Path, "session 0x%x has received %s, which session 0x%x had received and not given back", uint64(a.header.Session), name, uint64(e.holder))
	}
	e.claim, e.holder = &claim{q, name, a.header.Session}, a.header.Session
	a.queues.claims[path] = e.claim
	if e.received++; a.loading {
		return
	}
	q.Received++
	if e.received > 1 {
		q.Again++
	}
}

// deleteQueued applies the deletion of a claim or an element, and reports whether the path was that
// of a claim or an element. The transaction that acknowledges an element deletes its claim first.
func (a *auditor) deleteQueued(path string, expired bool) bool {
	if c := a.queues.claims[path]; c != nil {
		delete(a.queues.claims, path)
		delete(a.queues.owned[c.session], path)
		if e := c.queue.elements[c.name]; e != nil && e.claim == c {
			e.claim, e.freed = nil, a.header.Zxid
		}
		switch {
		case expired:
			c.queue.Expired++
		case c.session != a.header.Session:
			a.finding(Broken, c.queue.Path, "session 0x%x deleted the claim of session 0x%x on %s", uint64(a.header.Session), uint64(c.session), c.name)
		default:
			c.queue.Returned++ // unless its element is deleted too
		}
		return true
	}
	q, name := a.queues.byPath[gopath.Dir(path)], gopath.Base(path)
	if q == nil || q.elements[name] == nil {
		return false
	}
	e := q.elements[name]
	delete(q.elements, name)
	delete(a.queues.owned[a.header.Session], path)
	freed := e.freed == a.header.Zxid
	stolen := (e.claim != nil || freed) && e.holder != a.header.Session
	if freed && !stolen && !expired {
		q.Returned--
	}
	switch {
	case e.buried:
		q.Dead++
		return true
	case stolen:
		a.finding(Stolen, q.Path, "session 0x%x deleted %s, which session 0x%x had received", uint64(a.header.Session), name, uint64(e.holder))
		q.Deleted++
		return true
	case expired, q.Dialect == "zookeeper" && a.queues.alone:
		a.finding(Unclaimed, q.Path, "session 0x%x deleted %s, which it had not received", uint64(a.header.Session), name)
		q.Deleted++
		return true
	case freed:
		q.Acked++
	default:
		q.Taken++
	}
	q.Age.Add(a.header.Time - e.put)
	return true
}

// decide notes a decision: "commit" or "abort" and the reason, and on the next line the transaction's
// ID. An ID has one decision.
func (a *auditor) decide(dir string, data []byte) {
	text, id, ok := decisionIn(data)
	if !ok {
		return
	}
	if before := a.queues.decided[dir]; before[1] == id && before[0] != text {
		a.finding(TwoDecisions, dir, "session 0x%x decided %s, after %s", uint64(a.header.Session), text, before[0])
	}
	a.queues.decided[dir] = [2]string{text, id}
	if !a.loading && len(a.report.Decisions) < MaxFindings {
		a.report.Decisions = append(a.report.Decisions, Decision{a.moment(), dir, id, text, fmt.Sprintf("0x%x", uint64(a.header.Session))})
	}
}

// decisionIn parses the data of a decision, and shortens a long reason.
func decisionIn(data []byte) (text, id string, ok bool) {
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	if word, _, _ := bytes.Cut(line, []byte(" ")); string(word) != "commit" && string(word) != "abort" || len(rest) == 0 || len(rest) > mostData {
		return "", "", false
	}
	return string(line[:min(len(line), mostData)]), string(rest), true
}

// finishQueues completes the report's queues.
func (a *auditor) finishQueues() {
	for _, q := range a.queues.byPath {
		q.Left = len(q.elements)
		for _, e := range q.elements {
			if e.claim != nil {
				q.Claimed++
			}
		}
		a.report.Queues = append(a.report.Queues, &q.Queue)
	}
	slices.SortFunc(a.report.Queues, func(x, y *Queue) int { return cmp.Compare(x.Path, y.Path) })
}
