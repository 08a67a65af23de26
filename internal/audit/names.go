package audit

import (
	"math"
	gopath "path"
	"regexp"
	"strconv"
	"strings"
)

// recipe is a kind of wait queue, as the names of its znodes show it. Contenders of one recipe
// share an order. The markers are stated again here, because this package must not depend on the
// implementation. A test runs the recipes on a real server and audits its log.
type recipe struct {
	name, dialect string

	reads, writes string // markers; all contenders of a recipe without readers are writers
	named         *regexp.Regexp
	byCreation    bool // the order is that of creation
	permits       bool // the first n hold, not only the first one
}

// recipes are tried in this order. No name has two of them.
var recipes = []*recipe{
	priorityLock,
	{name: "lock", dialect: "zookeeper", writes: "lock-"}, // and Curator's InterProcessMutex
	{name: "election", dialect: "zookeeper", writes: "n_"},
	{name: "shared-lock", dialect: "zookeeper", reads: "read-", writes: "write-"},
	{name: "semaphore", dialect: "zookeeper", writes: "lease-", permits: true}, // and Curator's
	{name: "shared-lock", dialect: "curator", reads: "__READ__", writes: "__WRIT__"},
	{name: "election", dialect: "curator", writes: "latch-"},
	{name: "lock", dialect: "kazoo", reads: "__rlock__", writes: "__lock__"},
	kazooSemaphore,
	{name: "lock", dialect: "zookeeper-recipes-lock", named: regexp.MustCompile(`^x-(?:-?[0-9]+|[0-9a-f]{16})-([0-9]{10})$`)},
}

var (
	priorityLock = &recipe{name: "priority-lock", dialect: "zookeeper", byCreation: true,
		named: regexp.MustCompile(`^(?:.*-|)(?:read|write|reading|writing)-[0-9]{2}-([0-9]{10}|-[0-9]{9,10})$`)}
	kazooSemaphore = &recipe{name: "semaphore", dialect: "kazoo", byCreation: true, permits: true, named: regexp.MustCompile(`^[0-9a-f]{32}()$`)}
)

// place is what the name of a contender's znode shows.
type place struct {
	recipe   *recipe
	sequence int32
	reads    bool
	waits    bool // the contender has not claimed the grant: in a priority lock, holders have other names
}

// placeOf parses the name of the znode at path. ok is false if no recipe uses it.
func placeOf(path string) (p place, ok bool) {
	name := gopath.Base(path)
	if gopath.Base(gopath.Dir(path)) == "acks" {
		return place{}, false // the acknowledgements of an election can have the names of its candidates
	}
	for _, r := range recipes {
		if r.named != nil {
			m := r.named.FindStringSubmatch(name)
			if m == nil {
				continue
			}
			n, err := strconv.ParseInt(m[1], 10, 32)
			if r == priorityLock {
				mode, holds := strings.CutSuffix(name[:len(name)-len(m[1])-len("-00-")], "ing")
				return place{r, int32(n), strings.HasSuffix(mode, "read"), !holds}, err == nil
			}
			return place{recipe: r, sequence: int32(n)}, err == nil || m[1] == ""
		}
		for i, marker := range []string{r.reads, r.writes} {
			if n, ok := numberAfter(name, marker); ok {
				return place{recipe: r, sequence: n, reads: i == 0}, true
			}
		}
	}
	return place{}, false
}

// numberAfter returns the sequence number that ends a name, after the marker. The marker begins the
// name or follows a hyphen, unless it begins with underscores. Numbers from 2^31 on are negative.
func numberAfter(name, marker string) (int32, bool) {
	at := strings.LastIndex(name, marker)
	if marker == "" || at < 0 || at > 0 && name[at-1] != '-' && marker[0] != '_' {
		return 0, false
	}
	digits := name[at+len(marker):]
	if len(digits) < 10 || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err == nil
}

// exhausted reports whether the number does not show the order: the parent has no more numbers.
func (p place) exhausted() bool { return p.sequence == math.MaxInt32 || p.sequence < 0 }

// ahead reports whether c comes before other in their wait queue.
func (c *contender) ahead(other *contender) bool {
	if c.recipe.byCreation || c.sequence == other.sequence || c.exhausted() && other.exhausted() {
		return c.token < other.token
	}
	return c.sequence-other.sequence < 0 // numbers wrap
}

// needed returns what the audit needs of a znode's data. ok is false if it needs nothing of the
// znode, which holds for almost all znodes in a snapshot. It does not allocate in proportion to
// the data.
func needed(path, data []byte, ephemeral bool) (part []byte, ok bool) {
	name := string(path)
	base := gopath.Base(name)
	p, contends := placeOf(name)
	switch {
	case contends && (ephemeral || p.recipe != kazooSemaphore), permitsIn(data) > 0:
		return data[:min(len(data), mostData)], true
	case base == decisionName:
		text, id, ok := decisionIn(data)
		return []byte(text + "\n" + id), ok
	case elementName.MatchString(base):
		return nil, true
	}
	return nil, gopath.Base(gopath.Dir(name)) == claimsName && claimName.MatchString(base)
}

// mostData is how much of a znode's data the audit reads.
const mostData = 400

// permitsIn returns the number of permits in the data of a semaphore's path, ours or kazoo's, or 0.
func permitsIn(data []byte) int {
	if len(data) > 32 { // the data of another program
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(string(data)), "permits="))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Marks that recipes of zkrecipes write in front of the application's data.
const (
	bareHeader  = len("_p_") + 36 + len("-")
	unlock      = "unlock"
	marksOfLock = "zkrecipes:"
	slotMark    = "zkrecipes: slot="
)

// readData returns the application's data, shortened, and the marks of a contender.
func readData(data []byte) (text string, asked, downgraded bool) {
	text = string(data[:min(len(data), mostData)])
	if strings.HasPrefix(text, "_p_") && len(text) >= bareHeader && text[bareHeader-1] == '-' {
		text = text[bareHeader:]
	}
	if first, rest, _ := strings.Cut(text, "\n"); first == unlock {
		asked, text = true, rest
	}
	if first, rest, whole := strings.Cut(text, "\n"); whole && strings.HasPrefix(first, marksOfLock) {
		text = rest
		for _, word := range strings.Fields(first) {
			downgraded = downgraded || word == "downgraded"
		}
	}
	return strings.Clone(text[:min(len(text), 80)]), asked, downgraded // without the rest in memory
}
