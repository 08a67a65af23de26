package carry

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// size returns an upper bound of a call's size in a message, in bytes.
func size(c *pb.Call) int {
	n := len(c.GetMethod()) + len(c.GetPayload()) + 64
	for k, v := range c.GetMetadata() {
		n += len(k) + len(v) + 16
	}
	return n
}

// toTimeout returns the time until ctx's deadline; nil if it has none.
func toTimeout(ctx context.Context) *durationpb.Duration {
	end, ends := ctx.Deadline()
	if !ends {
		return nil
	}
	return durationpb.New(time.Until(end))
}

// toMetadata returns ctx's outgoing metadata. ok is false if a Call cannot carry it.
func toMetadata(ctx context.Context) (m map[string]string, ok bool) {
	md, found := metadata.FromOutgoingContext(ctx)
	if !found {
		return nil, true
	}
	m = make(map[string]string, len(md))
	for k, values := range md {
		if len(values) != 1 || strings.HasSuffix(k, "-bin") || !utf8.ValidString(k) || !utf8.ValidString(values[0]) {
			return nil, false
		}
		m[k] = values[0]
	}
	return m, true
}

// toStatus returns the status of a failed call, as bytes for an Answer. It is never empty,
// not even for an error with code OK.
func toStatus(err error) []byte {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	if s.Code() == codes.OK {
		s = status.New(codes.Internal, err.Error())
	}
	b, merr := proto.Marshal(s.Proto())
	if merr != nil {
		b, _ = proto.Marshal(&spb.Status{Code: int32(s.Code())}) // its message was not UTF-8
	}
	return b
}

// fromStatus returns the error of a failed call.
func fromStatus(b []byte) error {
	var s spb.Status
	if err := proto.Unmarshal(b, &s); err != nil {
		return status.Errorf(codes.Internal, "the status of a failed call: %v", err)
	}
	if s.GetCode() == int32(codes.OK) {
		return status.Error(codes.Internal, "a call has failed with status OK")
	}
	return status.ErrorProto(&s)
}
