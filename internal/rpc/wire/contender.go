package wire

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToContender converts a contender to a message.
func ToContender(c recipes.Contender) *pb.Contender {
	return &pb.Contender{
		Kind: string(c.Kind), Znode: c.Znode, Sequence: c.Sequence, Token: int64(c.Token), SessionId: c.SessionID, Data: c.Data,
		Holds: c.Holds, Since: toTime(c.Since), Mode: ToMode(c.Mode), Downgraded: c.Downgraded,
		Revocable: c.Revocable, Grace: ToDuration(c.Grace), Revoked: c.Revoked,
		Priority: int32(c.Priority), Successor: c.Successor, Dialect: string(c.Dialect),
	}
}

// Contender converts a message to a contender; nil is the zero Contender.
func Contender(c *pb.Contender) recipes.Contender {
	return recipes.Contender{
		Kind:       recipes.Kind(c.GetKind()),
		Znode:      c.GetZnode(),
		Sequence:   c.GetSequence(),
		Token:      recipes.Token(c.GetToken()),
		SessionID:  c.GetSessionId(),
		Data:       c.GetData(),
		Holds:      c.GetHolds(),
		Since:      fromTime(c.GetSince()),
		Mode:       Mode(c.GetMode()),
		Downgraded: c.GetDowngraded(),
		Revocable:  c.GetRevocable(),
		Grace:      c.GetGrace().AsDuration(),
		Revoked:    c.GetRevoked(),
		Priority:   int(c.GetPriority()),
		Successor:  c.GetSuccessor(),
		Dialect:    recipes.Dialect(c.GetDialect()),
	}
}

// ToContenders converts contenders to messages, in the same order.
func ToContenders(cs []recipes.Contender) []*pb.Contender { return each(cs, ToContender) }

// Contenders converts messages to contenders, in the same order.
func Contenders(cs []*pb.Contender) []recipes.Contender { return each(cs, Contender) }

// ToKinds converts kinds to their names in a message.
func ToKinds(kinds []recipes.Kind) []string {
	return each(kinds, func(k recipes.Kind) string { return string(k) })
}

// Kinds converts the names in a message to kinds.
func Kinds(kinds []string) []recipes.Kind {
	return each(kinds, func(k string) recipes.Kind { return recipes.Kind(k) })
}

// ToLines converts wait queues to a message.
func ToLines(l recipes.Lines) *pb.ContendersResponse {
	r := &pb.ContendersResponse{Contenders: ToContenders(l.Contenders), Permits: int32(l.Permits), Unknown: int32(l.Unknown)}
	for _, v := range l.Verdicts {
		verdict := &pb.Verdict{Kind: string(v.Kind), Dialect: string(v.Dialect)}
		if v.Foreign != nil {
			verdict.Foreign = ToForeign(v.Foreign)
		}
		r.Verdicts = append(r.Verdicts, verdict)
	}
	return r
}

// Lines converts a message to wait queues.
func Lines(r *pb.ContendersResponse) recipes.Lines {
	l := recipes.Lines{Contenders: Contenders(r.GetContenders()), Permits: int(r.GetPermits()), Unknown: int(r.GetUnknown())}
	for _, v := range r.GetVerdicts() {
		verdict := recipes.Verdict{Kind: recipes.Kind(v.GetKind()), Dialect: recipes.Dialect(v.GetDialect())}
		if v.GetForeign() != nil {
			verdict.Foreign = fromForeign(v.GetForeign())
		}
		l.Verdicts = append(l.Verdicts, verdict)
	}
	return l
}

// ToPlace converts a place to a message.
func ToPlace(p recipes.Place) *pb.Place {
	return &pb.Place{Znode: p.Znode, Position: int32(p.Position)}
}

// Place converts a message to a place.
func Place(p *pb.Place) recipes.Place {
	return recipes.Place{Znode: p.GetZnode(), Position: int(p.GetPosition())}
}

// ToEarlyPlace converts a place to a part of the response to a call that asks for a grant with
// a wait queue: AcquireResponse, CampaignResponse and others, which all have the place in the
// same field.
func ToEarlyPlace(p recipes.Place) *pb.AcquireResponse {
	return &pb.AcquireResponse{Place: ToPlace(p)}
}

// EarlyPlace reads the place of such a part, if it has one.
func EarlyPlace(part []byte) (recipes.Place, bool) {
	var r pb.AcquireResponse
	if err := proto.Unmarshal(part, &r); err != nil || r.GetPlace() == nil {
		return recipes.Place{}, false
	}
	return Place(r.GetPlace()), true
}
