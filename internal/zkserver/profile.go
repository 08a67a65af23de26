package zkserver

import (
	"slices"
	"strings"
	"time"
)

// profile is what a release does where servers differ in more than their answers. The
// dispatch reads its fields, so a server that behaves otherwise is another entry of
// profiles. The zero value of each field is ZooKeeper's behaviour.
type profile struct {
	name    string // of the release
	version string // that srvr and mntr report
	// answers is the release line of ZooKeeper whose answers it gives where no other field
	// says otherwise.
	answers    Release
	operations []Op // it supports no others
	parts      []Op // of a multi

	keeper bool   // it is ClickHouse Keeper: its words, its directory, its parts of a multi
	system []Node // what it creates for itself, each parent first

	// forgets: a session ends with its connection for the client, but not on the server. A
	// handshake ignores the old session, and gives a new one, whose number counts up.
	forgets bool
	// closesSilently: a close is answered by the end of the connection. So is a request that
	// the server does not support or cannot decode, which does not end the session.
	closesSilently bool
	// logged requests use a transaction id, although they change no znode, and a follower
	// forwards them. If there are some, only forwarded requests extend a follower's session.
	logged []Op
	// childSets: a set of a child counts in its parent's cversion, and its deletion leaves
	// the parent's pzxid alone.
	childSets bool
	// watchesRequestedPath: the data watch of the requested path fires for a sequential
	// znode, not that of the created path.
	watchesRequestedPath bool
	// showsContainers: the Stat of a container has its type as the owner.
	showsContainers bool
	// watchesUnreadable: watches fire also for a client that may not read the znode.
	watchesUnreadable bool
}

// supports reports whether a release has this request type.
func (p *profile) supports(op Op) bool { return slices.Contains(p.operations, op) }

// firstSession returns the number before that of the first session. In ZooKeeper, it is the
// number of the server, then time, then a counter. So the ids of an earlier server are not
// repeated.
func (p *profile) firstSession(now time.Time) int64 {
	if p.forgets {
		return 0
	}
	return 1<<56 | (now.UnixMilli()<<24)>>8&(1<<56-1)
}

// undeletable reports whether path is a znode that the server creates for itself.
func (p *profile) undeletable(path string) bool {
	return path == "/" || slices.ContainsFunc(p.system, func(n Node) bool { return n.Path == path })
}

// reserved reports whether clients cannot change path, nor create it.
func (p *profile) reserved(path string) bool {
	return p.keeper && (path == "/keeper" || strings.HasPrefix(path, "/keeper/"))
}

// The request types of 3.4, and those that later releases add. A check is only a part of a
// multi.
var (
	operations34 = []Op{OpCreate, OpDelete, OpExists, OpGetData, OpSetData, OpGetACL, OpSetACL, OpGetChildren, OpSync,
		OpPing, OpGetChildren2, OpMulti, OpAuth, OpSetWatches, OpCloseSession}
	operations36 = []Op{OpCreate2, OpCheckWatches, OpRemoveWatches, OpCreateContainer, OpCreateTTL, OpMultiRead,
		OpGetEphemerals, OpCountChildren, OpSetWatches2, OpAddWatch, OpWhoAmI}

	parts34 = []Op{OpCreate, OpDelete, OpSetData, OpCheck}
	parts36 = []Op{OpCreate2, OpCreateContainer, OpCreateTTL, OpGetData, OpGetChildren}

	zk34 = profile{name: "3.4", version: "3.4.13", answers: Release34, operations: operations34, parts: parts34, watchesUnreadable: true,
		system: []Node{{Path: "/zookeeper", ACL: openACL}, {Path: "/zookeeper/quota", ACL: openACL}}}
	zk38 = profile{name: "3.8", version: "3.8.0", answers: Release38, operations: slices.Concat(operations34, operations36),
		parts: slices.Concat(parts34, parts36), system: slices.Concat(zk34.system,
			[]Node{{Path: "/zookeeper/config", ACL: readOnlyACL, Stat: Stat{Aversion: -1}}})}
	zk39 = profile{name: "3.9", version: "3.9.6", answers: Release39, operations: zk38.operations, parts: zk38.parts,
		system: zk38.system}
)

// ClickHouse Keeper, as its sources, issues and pull requests describe it. Nothing here was
// recorded.
var (
	// The flags are bits, the most significant first: persistent watches are 7, and creating
	// with a Stat is 8. Those of requests that only Keeper has are off.
	flags = Node{Path: "/keeper/feature_flags", Data: []byte{1, 0x80}}

	keeper22 = profile{
		name: "keeper-22.8", version: "22.8", answers: Release38,
		operations: []Op{OpCreate, OpDelete, OpExists, OpGetData, OpSetData, OpGetACL, OpSetACL, OpGetChildren, OpSync,
			OpPing, OpGetChildren2, OpCheck, OpMulti, OpAuth, OpCloseSession},
		parts:  parts34,
		keeper: true, system: []Node{{Path: "/keeper"}, apiVersion("1")},
		forgets: true, closesSilently: true, logged: []Op{OpPing, OpSync, OpAuth},
		childSets: true, watchesRequestedPath: true, watchesUnreadable: true,
	}
	keeper26 = keeper22.with(func(p *profile) {
		p.name, p.version = "keeper-26.8", "26.8"
		p.operations = slices.Concat(p.operations, []Op{OpCreate2, OpCreateContainer, OpSetWatches, OpSetWatches2,
			OpAddWatch, OpCheckWatches, OpRemoveWatches})
		p.parts = slices.Concat(p.parts, []Op{OpCreate2, OpCreateContainer})
		p.system = []Node{{Path: "/keeper"}, apiVersion("2"), flags}
		p.showsContainers = true
	})
)

func apiVersion(v string) Node { return Node{Path: "/keeper/api_version", Data: []byte(v)} }

func (p profile) with(change func(*profile)) profile {
	change(&p)
	return p
}

var profiles = map[Release]*profile{
	Release34: &zk34, Release38: &zk38, Release39: &zk39, Keeper22: &keeper22, Keeper26: &keeper26,
}
