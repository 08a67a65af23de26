package wire

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/status"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Dialect reads the dialect of a request. An unknown one comes from a newer host.
func Dialect(name string) (recipes.Dialect, error) {
	if name != "" && !slices.Contains(recipes.Dialects(), recipes.Dialect(name)) {
		return "", fmt.Errorf("%w: the dialect %q", recipes.ErrUnsupported, name)
	}
	return recipes.Dialect(name), nil
}

// nameOf returns the name of a dialect in a request. The name of the default dialect is empty,
// so that the request also works with a plugin without dialects.
func nameOf(d recipes.Dialect) string {
	if d == recipes.ZooKeeper {
		return ""
	}
	return string(d)
}

// ToDialect checks a dialect and returns its name in a request.
func ToDialect(d recipes.Dialect) (string, error) {
	d, err := d.Normalize()
	return nameOf(d), err
}

// ToForeign converts a third-party contender to a message.
func ToForeign(e *recipes.ForeignError) *pb.Foreign {
	return &pb.Foreign{Dialect: string(e.Dialect), Recipe: e.Recipe, Znode: e.Znode}
}

func fromForeign(f *pb.Foreign) *recipes.ForeignError {
	return &recipes.ForeignError{Dialect: recipes.Dialect(f.GetDialect()), Recipe: f.GetRecipe(), Znode: f.GetZnode()}
}

// foreign returns the third-party contender that a failed call found, if the status has one.
func foreign(s *status.Status) *recipes.ForeignError {
	if f, ok := detail[*pb.Foreign](s); ok {
		return fromForeign(f)
	}
	return nil
}
