// Package english writes numbers in the messages of zkrecipes and zkbench as people do.
package english

import (
	"fmt"
	"regexp"
)

// sibilant matches words whose plural ends in -es.
var sibilant = regexp.MustCompile(`(s|x|z|ch|sh)$`)

// Count returns the number and the noun, which is in the singular: "1 watch", "2 watches".
// The noun may have adjectives before it.
func Count[N ~int | ~int64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case sibilant.MatchString(noun):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
