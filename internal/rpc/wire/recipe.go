package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func ToContender(c recipes.Contender) *pb.Contender {
	m := &pb.Contender{
		Kind: string(c.Kind), Znode: c.Znode, Sequence: c.Sequence, Token: int64(c.Token), SessionId: c.SessionID, Data: c.Data,
		Holds: c.Holds, Since: toTime(c.Since), Mode: ToMode(c.Mode), Downgraded: c.Downgraded,
		Revocable: c.Revocable, Grace: ToDuration(c.Grace), Revoked: c.Revoked,
		Priority: int32(c.Priority), Successor: c.Successor, Dialect: string(c.Dialect),
	}
	if c.Slot != nil {
		m.Slot = proto.Int32(int32(*c.Slot))
	}
	return m
}

// Contender converts a message to a contender; nil is the zero Contender.
func Contender(m *pb.Contender) recipes.Contender {
	c := recipes.Contender{
		Kind: recipes.Kind(m.GetKind()), Znode: m.GetZnode(), Sequence: m.GetSequence(), Token: recipes.Token(m.GetToken()),
		SessionID: m.GetSessionId(), Data: m.GetData(), Holds: m.GetHolds(), Since: fromTime(m.GetSince()),
		Mode: Mode(m.GetMode()), Downgraded: m.GetDowngraded(),
		Revocable: m.GetRevocable(), Grace: m.GetGrace().AsDuration(), Revoked: m.GetRevoked(),
		Priority: int(m.GetPriority()), Successor: m.GetSuccessor(), Dialect: recipes.Dialect(m.GetDialect()),
	}
	if m != nil && m.Slot != nil {
		c.Slot = new(int(m.GetSlot()))
	}
	return c
}

func ToLines(l recipes.Lines) *pb.ContendersResponse {
	r := &pb.ContendersResponse{Contenders: Each(l.Contenders, ToContender), Permits: int32(l.Permits), Unknown: int32(l.Unknown)}
	for _, v := range l.Verdicts {
		verdict := &pb.Verdict{Kind: string(v.Kind), Dialect: string(v.Dialect)}
		if v.Foreign != nil {
			verdict.Foreign = ToForeign(v.Foreign)
		}
		r.Verdicts = append(r.Verdicts, verdict)
	}
	return r
}

func Lines(r *pb.ContendersResponse) recipes.Lines {
	l := recipes.Lines{Contenders: Each(r.GetContenders(), Contender), Permits: int(r.GetPermits()), Unknown: int(r.GetUnknown())}
	for _, v := range r.GetVerdicts() {
		verdict := recipes.Verdict{Kind: recipes.Kind(v.GetKind()), Dialect: recipes.Dialect(v.GetDialect())}
		if v.GetForeign() != nil {
			verdict.Foreign = fromForeign(v.GetForeign())
		}
		l.Verdicts = append(l.Verdicts, verdict)
	}
	return l
}

func ToPlace(p recipes.Place) *pb.Place {
	return &pb.Place{Znode: p.Znode, Position: int32(p.Position)}
}

func Place(p *pb.Place) recipes.Place {
	return recipes.Place{Znode: p.GetZnode(), Position: int(p.GetPosition())}
}

// Dialect reads the dialect of a request. An unknown one comes from a newer host.
func Dialect(name string) (recipes.Dialect, error) {
	if name != "" && !slices.Contains(recipes.Dialects(), recipes.Dialect(name)) {
		return "", fmt.Errorf("%w: the dialect %q", recipes.ErrUnsupported, name)
	}
	return recipes.Dialect(name), nil
}

// ToDialect checks a dialect and returns its name in a request. The name of the default
// dialect is empty.
func ToDialect(d recipes.Dialect) (string, error) {
	d, err := d.Normalize()
	if d == recipes.ZooKeeper {
		return "", err
	}
	return string(d), err
}

func ToForeign(e *recipes.ForeignError) *pb.Foreign {
	return &pb.Foreign{Dialect: string(e.Dialect), Recipe: e.Recipe, Znode: e.Znode}
}

func fromForeign(f *pb.Foreign) *recipes.ForeignError {
	return &recipes.ForeignError{Dialect: recipes.Dialect(f.GetDialect()), Recipe: f.GetRecipe(), Znode: f.GetZnode()}
}

func ToEntry(e recipes.Entry) *pb.Entry {
	return &pb.Entry{Key: e.Key, Value: e.Value, Revision: int64(e.Revision), Modified: toTime(e.Modified), Unset: e.Unset, Version: e.Version}
}

// Entry converts a message to an entry; nil is None.
func Entry(e *pb.Entry) recipes.Entry {
	return recipes.Entry{
		Key: e.GetKey(), Value: e.GetValue(), Revision: recipes.Revision(e.GetRevision()), Modified: fromTime(e.GetModified()), Unset: e.GetUnset(),
		Version: e.GetVersion(),
	}
}

// ToLeader converts a leader to a message. Without a leader it has no contender.
func ToLeader(l recipes.Leader) *pb.Leader {
	if l.None() {
		return &pb.Leader{}
	}
	return &pb.Leader{
		Contender: ToContender(l.Contender), Acknowledged: l.Acknowledged, Acknowledgement: l.Acknowledgement,
	}
}

func Leader(l *pb.Leader) recipes.Leader {
	if l.GetContender() == nil {
		return recipes.Leader{}
	}
	return recipes.Leader{
		Contender: Contender(l.GetContender()), Acknowledged: l.GetAcknowledged(), Acknowledgement: l.GetAcknowledgement(),
	}
}

func ToMember(m recipes.Member) *pb.Member {
	return &pb.Member{
		Name: m.Name, Znode: m.Znode, Token: int64(m.Token), SessionId: m.SessionID,
		Since: toTime(m.Since), Data: m.Data, Unreadable: m.Unreadable,
	}
}

func Member(m *pb.Member) recipes.Member {
	return recipes.Member{
		Name: m.GetName(), Znode: m.GetZnode(), Token: recipes.Token(m.GetToken()), SessionID: m.GetSessionId(),
		Since: fromTime(m.GetSince()), Data: m.GetData(), Unreadable: m.GetUnreadable(),
	}
}

// ToTaken converts the owner of a name.
func ToTaken(e *recipes.TakenError) *pb.Taken {
	return &pb.Taken{Znode: e.Znode, SessionId: e.SessionID, Since: toTime(e.Since)}
}

func fromTaken(t *pb.Taken) *recipes.TakenError {
	return &recipes.TakenError{Znode: t.GetZnode(), SessionID: t.GetSessionId(), Since: fromTime(t.GetSince())}
}

// toTime converts a time to a message; the zero time becomes nil.
func toTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// fromTime converts a message to a time.
func fromTime(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime().In(time.Local)
}

var (
	toModes = map[recipes.Mode]pb.Mode{recipes.Reading: pb.Mode_MODE_READ, recipes.Writing: pb.Mode_MODE_WRITE}
	modes   = map[pb.Mode]recipes.Mode{pb.Mode_MODE_READ: recipes.Reading, pb.Mode_MODE_WRITE: recipes.Writing}
)

func ToMode(m recipes.Mode) pb.Mode { return toModes[m] }

// Mode converts the mode in a message; an unknown one becomes "".
func Mode(m pb.Mode) recipes.Mode { return modes[m] }

func ToOps(ops []recipes.Op) []*pb.Op {
	return Each(ops, func(o recipes.Op) *pb.Op {
		return &pb.Op{Kind: opKinds[o.Kind()], Path: o.Path, Data: o.Data, Version: o.Version}
	})
}

var opKinds = map[string]pb.OpKind{
	"create":     pb.OpKind_OP_KIND_CREATE,
	"set":        pb.OpKind_OP_KIND_SET,
	"delete":     pb.OpKind_OP_KIND_DELETE,
	"delete key": pb.OpKind_OP_KIND_DELETE_KEY,
	"held":       pb.OpKind_OP_KIND_HELD,
}

// Ops converts messages to operations, in the same order. A held, whose grant the message only
// names, and an unknown kind become the zero Op, which Op.Validate refuses.
func Ops(ops []*pb.Op) []recipes.Op {
	return Each(ops, func(o *pb.Op) recipes.Op {
		switch o.GetKind() {
		case pb.OpKind_OP_KIND_CREATE:
			return recipes.Create(o.GetPath(), o.GetData())
		case pb.OpKind_OP_KIND_SET:
			return recipes.Set(o.GetPath(), o.GetData(), o.GetVersion())
		case pb.OpKind_OP_KIND_DELETE:
			return recipes.Delete(o.GetPath(), o.GetVersion())
		case pb.OpKind_OP_KIND_DELETE_KEY:
			return recipes.DeleteKey(o.GetPath(), o.GetVersion())
		}
		return recipes.Op{}
	})
}

func ToQueue(priority bool, c recipes.QueueConfig) *pb.Queue {
	return &pb.Queue{
		Priority: priority, Ephemeral: c.Ephemeral, Capacity: int32(c.Capacity), MaxDeliveries: int32(c.MaxDeliveries),
	}
}

// QueueConfig returns the configuration in a message, for a dialect.
func QueueConfig(q *pb.Queue, d recipes.Dialect) recipes.QueueConfig {
	return recipes.QueueConfig{
		Ephemeral: q.GetEphemeral(), Capacity: int(q.GetCapacity()), MaxDeliveries: int(q.GetMaxDeliveries()), Dialect: d,
	}
}

func ToElement(e recipes.Element) *pb.Element {
	return &pb.Element{Id: string(e.ID), Priority: int32(e.Priority), Data: e.Data, Put: toTime(e.Put)}
}

// Element converts a message to an element; nil is the zero Element.
func Element(e *pb.Element) recipes.Element {
	return recipes.Element{ID: recipes.ElementID(e.GetId()), Priority: int(e.GetPriority()), Data: e.GetData(), Put: fromTime(e.GetPut())}
}

// DeliveryID is the request id of number i of the deliveries that one call has received.
func DeliveryID(call string, i int) string { return fmt.Sprintf("%s/%d", call, i) }

func ToReceivedElement(d recipes.Delivery) *pb.ReceivedElement {
	return &pb.ReceivedElement{Token: int64(d.Token()), Znode: d.Znode(), Element: ToElement(d.Element()), Attempt: int32(d.Attempt())}
}

// ElementIDs reads n names. A missing name is empty.
func ElementIDs(names []string, n int) []recipes.ElementID {
	out := make([]recipes.ElementID, n)
	for i, name := range names[:min(n, len(names))] {
		out[i] = recipes.ElementID(name)
	}
	return out
}

func ToRecord(r recipes.Record) *pb.Record {
	return &pb.Record{
		Name: r.Name, Znode: r.Znode, Token: int64(r.Token), SessionId: r.SessionID,
		Since: toTime(r.Since), Data: r.Data, Unreadable: r.Unreadable,
	}
}

// Record converts a message to a record; nil is None.
func Record(r *pb.Record) recipes.Record {
	return recipes.Record{
		Name: r.GetName(), Znode: r.GetZnode(), Token: recipes.Token(r.GetToken()), SessionID: r.GetSessionId(),
		Since: fromTime(r.GetSince()), Data: r.GetData(), Unreadable: r.GetUnreadable(),
	}
}

// Text makes s valid UTF-8. A message with a string that is not UTF-8 cannot be sent, and it may
// contain a decision that others wait for.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// ToDecision converts a decision to a message; nil for nil.
func ToDecision(d *recipes.Decision) *pb.Decision {
	if d == nil {
		return nil
	}
	return &pb.Decision{Commit: d.Commit, Reason: Text(d.Reason)}
}

func Decision(d *pb.Decision) recipes.Decision {
	return recipes.Decision{Commit: d.GetCommit(), Reason: d.GetReason()}
}

func ToTransactionStatus(s recipes.TransactionStatus) *pb.GetTransactionResponse {
	out := &pb.GetTransactionResponse{
		Variant: string(s.Variant), Payload: s.Payload,
		Decision: ToDecision(s.Decision), Coordinated: s.Coordinated,
	}
	for _, site := range s.Sites {
		out.Sites = append(out.Sites, &pb.SiteStatus{
			Name: site.Name, Vote: Text(string(site.Vote)), Joined: site.Joined, Dead: site.Dead, Done: site.Done,
		})
	}
	return out
}

func TransactionStatus(s *pb.GetTransactionResponse) recipes.TransactionStatus {
	out := recipes.TransactionStatus{
		Variant: recipes.Variant(s.GetVariant()), Payload: s.GetPayload(), Coordinated: s.GetCoordinated(),
	}
	for _, site := range s.GetSites() {
		out.Sites = append(out.Sites, recipes.SiteStatus{
			Name: site.GetName(), Vote: recipes.Vote(site.GetVote()),
			Joined: site.GetJoined(), Dead: site.GetDead(), Done: site.GetDone(),
		})
	}
	if s.GetDecision() != nil {
		d := Decision(s.GetDecision())
		out.Decision = &d
	}
	return out
}
