package wire_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var contender = recipes.Contender{
	Znode: "/l/_c_x-lock-0000000001", Sequence: -7, Token: 1 << 40, SessionID: -3,
	Since: time.Unix(1700000000, 5).In(time.Local), Data: []byte("who"),
	Kind: recipes.KindPriorityLock, Holds: true, Mode: recipes.Writing, Downgraded: true, Revocable: true,
	Grace: 1500 * time.Millisecond, Revoked: true, Priority: 99, Successor: true, Dialect: recipes.Kazoo, Slot: new(int),
}

// The test fills every field, so it fails for a new field that is not converted.
func TestNothingIsLostOnTheWire(t *testing.T) {
	config := recipes.SessionConfig{
		Servers: []string{"a:1", "b:2"}, Chroot: "/c", SessionTimeout: time.Second, ConnectTimeout: 2 * time.Second,
		Digest: &recipes.Digest{User: "u", Password: "p"}, ACL: []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "world", ID: "anyone"}},
		TLS:       &recipes.TLS{CA: []byte("ca"), Certificate: []byte("crt"), Key: []byte("key"), CAFile: "/ca", CertificateFile: "/crt", KeyFile: "/key", ServerName: "n", AnyName: true},
		MaxPacket: 12345, MaxListing: 54321, ReadsPerSecond: 67, FollowServers: true, ZooKeeperOnly: true,
		SASL: &recipes.SASL{Mechanism: "m", User: "u", Password: "p", Keytab: "k", CCache: "c", Krb5Conf: "5", Service: "s"},
	}
	leader := recipes.Leader{Contender: contender, Acknowledged: true, Acknowledgement: []byte("done")}
	stats := recipes.Stats{
		Reads: 1, Writes: 2, Pings: 3, WatchEvents: 4, RequestBytes: 5, ResponseBytes: 6, Reconnects: 7,
		Handoffs: 9, Fallbacks: 10, Asked: 11, ByKind: map[string]int64{"create": 8},
	}
	ops := []recipes.Op{recipes.Create("/a", []byte("x")), recipes.Set("/b", nil, 3), recipes.Delete("/c", recipes.AnyVersion)}
	place := recipes.Place{Znode: "/l/x", Position: 4}
	lines := recipes.Lines{
		Contenders: []recipes.Contender{contender}, Permits: 3, Unknown: 4,
		Verdicts: []recipes.Verdict{{Kind: recipes.KindLock, Dialect: recipes.Kazoo, Foreign: &recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Lock", Znode: "/a/b"}}},
	}
	member := recipes.Member{Name: "ann", Znode: "/g/ann", Token: 1 << 40, SessionID: -3, Since: contender.Since, Data: []byte("who"), Unreadable: true}
	record := recipes.Record{Name: "ann", Znode: "/g/ann", Token: 1 << 40, SessionID: -3, Since: contender.Since, Data: []byte("who"), Unreadable: true}
	entry := recipes.Entry{Key: "a/b", Value: []byte("x"), Revision: 1 << 40, Modified: contender.Since, Unset: true, Version: 7}
	queue := recipes.QueueConfig{Ephemeral: true, Capacity: 3, MaxDeliveries: 4, Dialect: recipes.Kazoo}
	element := recipes.Element{ID: "queue-0000000001", Priority: 7, Data: []byte("x"), Put: contender.Since}
	decision := recipes.Decision{Commit: true, Reason: "all did"}
	site := recipes.SiteStatus{Name: "a", Vote: recipes.VoteAbort, Joined: true, Dead: true, Done: true}
	status := recipes.TransactionStatus{
		Variant: recipes.OwnNodes, Payload: []byte("p"), Sites: []recipes.SiteStatus{site}, Decision: &decision, Coordinated: true,
	}
	for _, c := range []struct {
		name      string
		got, want any
		skip      string // field that is not sent
	}{
		{"config", wire.Config(wire.ToConfig(config)), config, "Logger"},
		{"contenders", wire.Contender(wire.ToContender(contender)), contender, ""},
		{"lines", wire.Lines(wire.ToLines(lines)),
			lines, ""},
		{"leader", wire.Leader(wire.ToLeader(leader)), leader, ""},
		{"place", wire.Place(wire.ToPlace(place)), place, ""},
		{"stats", wire.Stats(wire.ToStats(stats)), stats, "Server"}, // Opened has it
		{"member", wire.Member(wire.ToMember(member)), member, ""},
		{"record", wire.Record(wire.ToRecord(record)), record, ""},
		{"entry", wire.Entry(wire.ToEntry(entry)), entry, ""},
		{"queue", wire.QueueConfig(wire.ToQueue(true, queue), queue.Dialect), queue, ""},
		{"element", wire.Element(wire.ToElement(element)), element, ""},
		{"decision", wire.Decision(wire.ToDecision(&decision)), decision, ""},
		{"site", wire.TransactionStatus(wire.ToTransactionStatus(status)).Sites[0], site, ""},
		{"transaction", wire.TransactionStatus(wire.ToTransactionStatus(status)), status, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			complete(t, c.got, c.want, c.skip)
		})
	}
	if got := wire.Ops(wire.ToOps(ops)); fmt.Sprint(got) != fmt.Sprint(ops) {
		t.Errorf("ops %v; want %v", got, ops)
	}
	if q := wire.ToQueue(true, queue); !q.GetPriority() {
		t.Errorf("queue %v", q)
	}
}

// A missing leader, name or decision does not become a value with empty fields.
func TestNothingStaysNothing(t *testing.T) {
	if l := wire.Leader(wire.ToLeader(recipes.Leader{})); !l.None() {
		t.Errorf("%+v", l)
	}
	if r := wire.Record(wire.ToRecord(recipes.Record{})); !r.None() {
		t.Errorf("%+v", r)
	}
	if d := wire.TransactionStatus(&pb.GetTransactionResponse{}).Decision; d != nil {
		t.Errorf("no decision became %+v", d)
	}
}

func TestUnknownOperationIsRefused(t *testing.T) {
	if wire.Ops([]*pb.Op{{Kind: 99, Path: "/a"}})[0].Validate() == nil {
		t.Error("an unknown kind became a known one")
	}
}

func TestStates(t *testing.T) {
	for _, s := range []recipes.State{recipes.Connected, recipes.Suspended, recipes.Lost} {
		if got := wire.State(wire.ToState(s)); got != s {
			t.Errorf("%v became %v", s, got)
		}
	}
	if got := wire.State(99); got != recipes.Suspended {
		t.Errorf("a state that is not known is %v", got)
	}
}

// A program in another language, or an operator, may have written the string. A message that
// cannot be sent would lose its other fields too.
func TestInvalidUTF8CanBeSent(t *testing.T) {
	const bytes, text = "a\xff", "a\uFFFD"
	m := wire.ToTransactionStatus(recipes.TransactionStatus{
		Sites: []recipes.SiteStatus{{Vote: bytes}}, Decision: &recipes.Decision{Reason: bytes},
	})
	must.Get(proto.Marshal(m))(t)
	got := wire.TransactionStatus(m)
	if got.Sites[0].Vote != text || got.Decision.Reason != text {
		t.Errorf("%+v, decision %+v", got, got.Decision)
	}
}

func TestUnknownModes(t *testing.T) {
	if m := wire.Mode(pb.Mode(99)); m != "" {
		t.Errorf("mode %q", m)
	}
	if m := wire.ToMode("append"); m != pb.Mode_MODE_UNSPECIFIED {
		t.Errorf("mode %v", m)
	}
}

// complete fails if got differs from want, or if a field of want is zero, because its loss
// would go unnoticed. The fields in left are not sent.
func complete(t *testing.T, got, want any, left ...string) {
	t.Helper()
	v := reflect.ValueOf(want)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !slices.Contains(left, name) {
			t.Errorf("the test leaves %s out", name)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestTheOwnerOfTheNameIsSentWithTheFailure(t *testing.T) {
	want := recipes.TakenError{Znode: "/g/ann", SessionID: -3, Since: time.Unix(1700000000, 5).In(time.Local)}
	err := fmt.Errorf("group /g: %w", &want)
	got, said := wire.Error(throughStatus(t, wire.ToStatus(err)))
	var taken *recipes.TakenError
	if !said || !errors.As(got, &taken) {
		t.Fatalf("%#v", got)
	}
	complete(t, *taken, want)
	sameAnswers(t, got, err)
	if got, _ := wire.Error(throughStatus(t, wire.ToStatus(recipes.ErrNodeExists))); errors.As(got, &taken) {
		t.Error("an error without the detail has an owner")
	}
}

// A plugin that returns fewer ids than elements does not break its host.
func TestElementIDsAreAsManyAsElements(t *testing.T) {
	for _, names := range [][]string{nil, {"a"}, {"a", "b"}, {"a", "b", "c"}} {
		if got := wire.ElementIDs(names, 2); len(got) != 2 {
			t.Errorf("%q became %q", names, got)
		}
	}
}
