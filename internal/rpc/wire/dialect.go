package wire

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/status"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Dialect reads the dialect of a request. One that is not known is a newer host's.
func Dialect(name string) (recipes.Dialect, error) {
	if name != "" && !slices.Contains(recipes.Dialects(), recipes.Dialect(name)) {
		return "", fmt.Errorf("%w: the dialect %q", recipes.ErrUnsupported, name)
	}
	return recipes.Dialect(name), nil
}

// nameOf is the name of a dialect in a request. The default has none, so that nothing is
// asked of a plugin without dialects.
func nameOf(d recipes.Dialect) string {
	if d == recipes.DefaultDialect {
		return ""
	}
	return string(d)
}

// ToDialect is nameOf for a dialect that may not exist.
func ToDialect(d recipes.Dialect) (string, error) {
	d, err := d.Normalize()
	return nameOf(d), err
}

// ToForeign makes a message.
func ToForeign(e *recipes.ForeignError) *pb.Foreign {
	return &pb.Foreign{Dialect: string(e.Dialect), Recipe: e.Recipe, Znode: e.Znode}
}

func fromForeign(f *pb.Foreign) *recipes.ForeignError {
	return &recipes.ForeignError{Dialect: recipes.Dialect(f.GetDialect()), Recipe: f.GetRecipe(), Znode: f.GetZnode()}
}

// foreign returns the contender that a call has met, if its status names one.
func foreign(s *status.Status) *recipes.ForeignError {
	if f, ok := detail[*pb.Foreign](s); ok {
		return fromForeign(f)
	}
	return nil
}
