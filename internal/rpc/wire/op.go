package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToOps converts operations to messages, in the same order.
func ToOps(ops []recipes.Op) []*pb.Op {
	return each(ops, func(o recipes.Op) *pb.Op {
		return &pb.Op{Kind: opKinds[o.Kind()], Path: o.Path, Data: o.Data, Version: o.Version}
	})
}

var opKinds = map[string]pb.OpKind{
	"create": pb.OpKind_OP_KIND_CREATE,
	"set":    pb.OpKind_OP_KIND_SET,
	"delete": pb.OpKind_OP_KIND_DELETE,
}

// Ops converts messages to operations, in the same order. An unknown kind becomes the zero Op,
// which Op.Validate refuses.
func Ops(ops []*pb.Op) []recipes.Op {
	return each(ops, func(o *pb.Op) recipes.Op {
		switch o.GetKind() {
		case pb.OpKind_OP_KIND_CREATE:
			return recipes.Create(o.GetPath(), o.GetData())
		case pb.OpKind_OP_KIND_SET:
			return recipes.Set(o.GetPath(), o.GetData(), o.GetVersion())
		case pb.OpKind_OP_KIND_DELETE:
			return recipes.Delete(o.GetPath(), o.GetVersion())
		}
		return recipes.Op{}
	})
}
