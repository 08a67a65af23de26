package recipes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestPaths: ValidatePath refuses the paths that a server refuses. The conformance script
// badpaths shows that ZooKeeper 3.8.0 refuses each of these ranges of characters.
func TestPaths(t *testing.T) {
	for _, good := range []string{
		"/", "/a", "/a/b", "/a.b", "/...", "/a/..b", "/\u00e4", "/ ", "/\u00a0", "/\ud7ff", "/\uf900", "/\uffef",
		"/zookeeper/quota", "/zookeepers", "/a/zookeeper",
	} {
		if err := recipes.ValidatePath(good); err != nil {
			t.Error(err)
		}
	}
	for bad, why := range map[string]string{
		"":               "is empty",
		"a":              "does not start with /",
		"//":             "ends with /",
		"/a/":            "ends with /",
		"/a//b":          "has an empty element",
		"/./a":           "has the element .,",
		"/a/../b":        "has the element ..,",
		"/a\x00":         `has the character '\x00' (U+0000)`,
		"/a\x1f":         "(U+001F)",
		"/a\x7f":         "(U+007F)",
		"/a\u009f":       "(U+009F)",
		"/a\ue000":       "(U+E000)",
		"/a\uf8ff":       "(U+F8FF)",
		"/a\ufff0":       "(U+FFF0)",
		"/a\uffff":       "(U+FFFF)",
		"/x\U0001f600":   "has the character '\U0001f600' (U+1F600), which ZooKeeper refuses",
		"/a\U0010ffff":   "(U+10FFFF)",
		"/a\xed\xa0\x80": "is not UTF-8",
		"/zookeeper":     "is the servers' own directory",
	} {
		if err := recipes.ValidatePath(bad); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v; want ErrInvalid with %q", bad, err, why)
		}
	}
}

// TestKeysAndNames: errors quote keys and names as the caller passed them.
func TestKeysAndNames(t *testing.T) {
	for _, key := range []string{"", "db/host", "zookeeper"} {
		if err := recipes.ValidateKey(key); err != nil {
			t.Error(err)
		}
	}
	if err := recipes.ValidateName("zookeeper"); err != nil {
		t.Error(err)
	}
	for key, why := range map[string]string{
		"../x":        `key "../x" has the element ..`,
		"a/":          `key "a/" ends with /`,
		"x\U0001f600": "(U+1F600)",
		"/a":          "starts with a slash",
	} {
		if err := recipes.ValidateKey(key); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v; want ErrInvalid with %q", key, err, why)
		}
	}
	for name, why := range map[string]string{"..": `name ".." has the element ..`, "x\ue000": "(U+E000)", "a/b": "has a slash"} {
		if err := recipes.ValidateName(name); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v; want ErrInvalid with %q", name, err, why)
		}
	}
}
