package host_test

import (
	"context"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// saysMore has a plugin say what this host does not know. Every message has another
// field, every session's stream another message, and every error another reason,
// which is the most specific one.
func saysMore() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(answersMore),
		grpc.ChainStreamInterceptor(func(srv any, st grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, &talkative{ServerStream: st})
		}),
	}
}

func answersMore(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, r)
	if err != nil {
		return nil, anotherReason(err)
	}
	anotherField(answer)
	return answer, nil
}

type talkative struct {
	grpc.ServerStream
	opened bool
}

func (t *talkative) SendMsg(m any) error {
	anotherField(m)
	err := t.ServerStream.SendMsg(m)
	if _, ok := m.(*pb.OpenResponse); ok && err == nil && !t.opened {
		t.opened = true
		news := &pb.OpenResponse{}
		anotherField(news)
		return t.ServerStream.SendMsg(news)
	}
	return err
}

// anotherField adds a field of a number that is not used yet.
func anotherField(m any) {
	field := protowire.AppendTag(nil, 1000, protowire.BytesType)
	m.(proto.Message).ProtoReflect().SetUnknown(protowire.AppendString(field, "of another time"))
}

func anotherReason(err error) error {
	s := status.Convert(err)
	var details []protoadapt.MessageV1
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			info.Metadata["reasons"] = "OF_ANOTHER_TIME," + info.Metadata["reasons"]
			info.Reason = "OF_ANOTHER_TIME"
		}
		details = append(details, protoadapt.MessageV1Of(d.(proto.Message)))
	}
	s, werr := status.New(s.Code(), s.Message()).WithDetails(details...)
	if werr != nil {
		return werr
	}
	return s.Err()
}
