package recipes

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidatePath reports, as an ErrInvalid, why path is not a path of a znode: absolute,
// without empty, "." or ".." elements, without a trailing slash, and without the
// characters that ZooKeeper refuses. "/" is a path. "/zookeeper" is not, nor is any path
// below it: it is the servers' own directory.
func ValidatePath(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: path is empty; a path starts with /", ErrInvalid)
	case path[0] != '/':
		return fmt.Errorf("%w: path %q does not start with /", ErrInvalid, path)
	case path == "/":
		return nil
	case path == "/zookeeper", strings.HasPrefix(path, "/zookeeper/"):
		return fmt.Errorf("%w: path %q: /zookeeper is the servers' own directory; use another path", ErrInvalid, path)
	}
	return validateElements("path", path, path[1:])
}

// validateElements checks what follows the first slash of a path. Errors call the path
// what, and quote given.
func validateElements(what, given, elements string) error {
	invalid := func(why string) error {
		return fmt.Errorf("%w: %s %q %s", ErrInvalid, what, given, why)
	}
	switch {
	case strings.HasSuffix(elements, "/"):
		return invalid("ends with /")
	case !utf8.ValidString(elements):
		return invalid("is not UTF-8")
	}
	for element := range strings.SplitSeq(elements, "/") {
		switch element {
		case "":
			return invalid("has an empty element")
		case ".", "..":
			return invalid("has the element " + element + ", which only relative paths have")
		}
	}
	for _, r := range elements {
		if refused(r) {
			return invalid(fmt.Sprintf("has the character %q (%U), which ZooKeeper refuses", r, r))
		}
	}
	return nil
}

// refused reports whether ZooKeeper's PathUtils.validatePath refuses a character. That
// method checks UTF-16, in which a character above U+FFFF is a pair of surrogates, and
// refuses surrogates.
func refused(r rune) bool {
	switch {
	case r <= 0x1f, r >= 0x7f && r <= 0x9f:
		return true // controls
	case r >= 0xe000 && r <= 0xf8ff:
		return true // private use; the surrogates below are no runes of UTF-8
	}
	return r >= 0xfff0
}
