package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToOps converts operations to messages, in the same order.
func ToOps(ops []recipes.Op) []*pb.Op {
	return each(ops, func(o recipes.Op) *pb.Op {
		return &pb.Op{Kind: toOpKind(o.Kind), Path: o.Path, Data: o.Data, Version: o.Version}
	})
}

// Ops converts messages to operations, in the same order. An unknown kind becomes one that
// Op.Validate refuses.
func Ops(ops []*pb.Op) []recipes.Op {
	return each(ops, func(o *pb.Op) recipes.Op {
		return recipes.Op{Kind: opKind(o.GetKind()), Path: o.GetPath(), Data: o.GetData(), Version: o.GetVersion()}
	})
}

func toOpKind(k recipes.OpKind) pb.OpKind {
	switch k {
	case recipes.OpCreate:
		return pb.OpKind_OP_KIND_CREATE
	case recipes.OpSet:
		return pb.OpKind_OP_KIND_SET
	case recipes.OpDelete:
		return pb.OpKind_OP_KIND_DELETE
	}
	return pb.OpKind_OP_KIND_UNSPECIFIED
}

func opKind(k pb.OpKind) recipes.OpKind {
	switch k {
	case pb.OpKind_OP_KIND_CREATE:
		return recipes.OpCreate
	case pb.OpKind_OP_KIND_SET:
		return recipes.OpSet
	case pb.OpKind_OP_KIND_DELETE:
		return recipes.OpDelete
	}
	return 0
}
