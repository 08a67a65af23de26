package wire

import (
	"strings"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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

// Decision converts a message to a decision.
func Decision(d *pb.Decision) recipes.Decision {
	return recipes.Decision{Commit: d.GetCommit(), Reason: d.GetReason()}
}

// ToTransactionStatus converts a transaction status to a message.
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

// TransactionStatus converts a message to a transaction status.
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
