package recipes

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidatePath reports, as an ErrInvalid, why path is not the path of a znode. A
// path is absolute and has no trailing slash. It has no empty, "." or ".." elements,
// and no characters that ZooKeeper refuses. "/" is a path.
func ValidatePath(path string) error {
	invalid := func(why string) error {
		return fmt.Errorf("%w: path %q %s", ErrInvalid, path, why)
	}
	switch {
	case path == "":
		return fmt.Errorf("%w: path is empty; a path starts with /", ErrInvalid)
	case path[0] != '/':
		return invalid("does not start with /")
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return invalid("ends with /")
	case !utf8.ValidString(path):
		return invalid("is not UTF-8")
	}
	for _, element := range strings.Split(path[1:], "/") {
		switch element {
		case "":
			return invalid("has an empty element")
		case ".", "..":
			return invalid("is relative")
		}
	}
	// The ranges are those of ZooKeeper's PathUtils.validatePath.
	for _, r := range path {
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xf000 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff {
			return invalid(fmt.Sprintf("has the character %U, which ZooKeeper refuses", r))
		}
	}
	return nil
}
