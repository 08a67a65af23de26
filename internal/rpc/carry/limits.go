package carry

import (
	"cmp"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// Capability is the name of this package's feature among a plugin's capabilities.
const Capability = "call-connection"

// The limits of one connection, unless the plugin accepts only smaller messages. MaxCalls is
// as large as the limit on sessions, because a waiting call counts as long as it waits.
const (
	MaxCalls   = 16 << 10 // without an answer
	MaxBytes   = 16 << 20 // of their payloads
	MaxPayload = 32 << 10 // of one call, in bytes
	maxMessage = 64 << 10 // in bytes

	maxResponse = 1 << 20 // a message of the plugin's, in bytes
)

// part is the size of the parts of a long answer, in bytes.
const part = 32 << 10

// MaxUnsent and MaxKept are limits for a host that does not read, in bytes of answers. Each
// answer counts answerOverhead more than its size. Beyond MaxUnsent the plugin reads no more
// calls. Running calls continue, and may have answers of any size. Beyond MaxKept the
// connection ends.
const (
	MaxUnsent = 4 << 20
	MaxKept   = 64 << 20
)

// answerOverhead is the memory of an answer besides its payload and its status, in bytes. MaxUnsent
// allows one small answer for each call: MaxUnsent / answerOverhead is MaxCalls.
const answerOverhead = 256

// overhead bounds the size of a call in a message besides its payload, in bytes: method and
// metadata. A call that has more is made by gRPC.
const overhead = 2 << 10

// Limits bound the unanswered calls of a host on one connection, and the size of its messages.
type Limits struct {
	Calls   int // without an answer
	Bytes   int // of their payloads together
	Payload int // of one call, in bytes
	Message int // one CarryRequest, in bytes
}

// within returns the limits of a plugin that accepts messages of that size.
func within(message int) Limits {
	l := Limits{Calls: MaxCalls, Bytes: MaxBytes, Message: min(maxMessage, cmp.Or(message, maxMessage))}
	l.Payload = max(0, min(MaxPayload, l.Message-overhead))
	return l
}

func toLimits(l Limits) *pb.Limits {
	return &pb.Limits{Calls: uint32(l.Calls), Bytes: uint32(l.Bytes), Payload: uint32(l.Payload), Message: uint32(l.Message)}
}

// limits returns a plugin's limits, but no more than a host needs.
func limits(l *pb.Limits) Limits {
	return Limits{
		Calls:   int(min(l.GetCalls(), MaxCalls)),
		Bytes:   int(min(l.GetBytes(), MaxBytes)),
		Payload: int(min(l.GetPayload(), MaxPayload)),
		Message: int(min(l.GetMessage(), maxMessage)),
	}
}
