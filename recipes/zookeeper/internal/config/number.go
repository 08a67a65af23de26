package config

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// curatorSize is the size of the data of Curator's DistributedAtomicLong: a number of 64
// bits, big endian. This was read in the sources of Curator 5.4.0. kazoo's Counter stores
// decimal text, as the default dialect does.
const curatorSize = 8

func (n *number) encode(value int64) []byte {
	if n.binary {
		return binary.BigEndian.AppendUint64(nil, uint64(value))
	}
	return strconv.AppendInt(nil, value, 10)
}

// decode reads data that is not empty. It refuses data in the form of the other dialect:
// eight decimal digits, read as Curator's form, would be a number near 2^61. So it also
// refuses a number of Curator whose eight bytes are all digits.
func (n *number) decode(data []byte) (int64, error) {
	value, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	switch decimal := err == nil; {
	case n.binary && decimal:
		return 0, n.session.Refuse(n.path, recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Counter", Znode: n.path})
	case n.binary && len(data) == curatorSize:
		return int64(binary.BigEndian.Uint64(data)), nil
	case n.binary:
		return 0, fmt.Errorf("%w: the data of %s are %d bytes, not the 8 of Curator's DistributedAtomicLong", recipes.ErrInvalid, n.path, len(data))
	case decimal:
		return value, nil
	case len(data) == curatorSize && (data[0] == 0 || data[0] == 0xff): // a number of less than 56 bits
		return 0, n.session.Refuse(n.path, recipes.ForeignError{Dialect: recipes.Curator, Recipe: "DistributedAtomicLong", Znode: n.path})
	}
	return 0, fmt.Errorf("%w: the data of %s are %q, not a number of 64 bits", recipes.ErrInvalid, n.path, znode.Excerpt(string(data)))
}
