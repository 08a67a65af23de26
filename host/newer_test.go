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

// additions make a plugin send what this host does not know: a field in every message, a
// message on every session's stream, and a reason that comes first in every error.
func additions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(addToAnswer),
		grpc.ChainStreamInterceptor(func(srv any, st grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, &addingStream{ServerStream: st})
		}),
	}
}

func addToAnswer(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, r)
	if err != nil {
		return nil, addReason(err)
	}
	addField(answer)
	return answer, nil
}

type addingStream struct {
	grpc.ServerStream
	opened bool
}

func (s *addingStream) SendMsg(m any) error {
	addField(m)
	err := s.ServerStream.SendMsg(m)
	if _, ok := m.(*pb.OpenResponse); ok && err == nil && !s.opened {
		s.opened = true
		unknown := &pb.OpenResponse{}
		addField(unknown)
		return s.ServerStream.SendMsg(unknown)
	}
	return err
}

// addField adds a field with an unused number.
func addField(m any) {
	field := protowire.AppendTag(nil, 1000, protowire.BytesType)
	m.(proto.Message).ProtoReflect().SetUnknown(protowire.AppendString(field, "unknown"))
}

func addReason(err error) error {
	s := status.Convert(err)
	var details []protoadapt.MessageV1
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			info.Metadata["reasons"] = "UNKNOWN_TO_HOST," + info.Metadata["reasons"]
			info.Reason = "UNKNOWN_TO_HOST"
		}
		details = append(details, protoadapt.MessageV1Of(d.(proto.Message)))
	}
	s, werr := status.New(s.Code(), s.Message()).WithDetails(details...)
	if werr != nil {
		return werr
	}
	return s.Err()
}
