package carry

import (
	"cmp"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// Capability is the name of what this package does among a plugin's capabilities.
const Capability = "call-connection"

// The limits of one connection, unless the plugin accepts only smaller
// messages. Calls that wait stay on it for as long as they wait. So there can
// be as many as there are sessions.
const (
	MaxCalls   = 16 << 10 // that are not answered
	MaxBytes   = 16 << 20 // of their payloads
	MaxPayload = 32 << 10 // of one call, in bytes
	maxMessage = 64 << 10 // in bytes

	maxResponse = 1 << 20 // a message of the plugin's, in bytes
)

// part is the size of the parts into which answers are cut, in bytes.
const part = 32 << 10

// What may wait for a host that does not read, in bytes of answers, each of which counts
// for answerOverhead more than it has. Beyond MaxUnsent the plugin reads no calls. The
// calls that run by then go on, and may have answers of any size. Beyond MaxKept the
// connection ends.
const (
	MaxUnsent = 4 << 20
	MaxKept   = 64 << 20
)

// answerOverhead is what an answer takes beside its payload and its status, in bytes. So
// as many answers wait as there are calls: MaxUnsent / answerOverhead is MaxCalls.
const answerOverhead = 256

// overhead bounds what a call has in a message beside its payload, in bytes: the
// rest of what gRPC calls headers. A call that has more is made by gRPC.
const overhead = 2 << 10

// Limits bound what a host may have on one connection.
type Limits struct {
	Calls   int // that are not answered
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

// limits are those of a plugin, or smaller ones: a host needs no more than these.
func limits(l *pb.Limits) Limits {
	return Limits{
		Calls:   int(min(l.GetCalls(), MaxCalls)),
		Bytes:   int(min(l.GetBytes(), MaxBytes)),
		Payload: int(min(l.GetPayload(), MaxPayload)),
		Message: int(min(l.GetMessage(), maxMessage)),
	}
}
