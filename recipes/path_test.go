package recipes_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestPaths: ValidatePath refuses the paths that a server refuses. The conformance script
// badpaths shows that ZooKeeper 3.8.0 refuses each of these ranges of characters.
func TestPaths(t *testing.T) {
	for _, good := range []string{
		"/", "/a", "/a/b", "/a.b", "/...", "/a/..b", "/\u00e4", "/ ", "/\u00a0", "/\ud7ff", "/\uf900", "/\uffef",
		"/zookeepers", "/zookeepers/quota", "/a/zookeeper",
	} {
		must.Report(t, recipes.ValidatePath(good))
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
		"/zookeeper":     "/zookeeper is the servers' own directory",
		// Locks below it would be children of the servers' quotas.
		"/zookeeper/quota": "/zookeeper is the servers' own directory",
	} {
		if err := recipes.ValidatePath(bad); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v; want ErrInvalid with %q", bad, err, why)
		}
	}
}

// TestKeysAndNames: errors quote keys and names as the caller passed them.
func TestKeysAndNames(t *testing.T) {
	for _, key := range []string{"", "db/host", "zookeeper"} {
		must.Report(t, recipes.ValidateKey(key))
	}
	must.Report(t, recipes.ValidateName("zookeeper"))
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

func TestTheDefaultsOfASessionAreThoseOfTheDocumentation(t *testing.T) {
	c, err := recipes.SessionConfig{Servers: []string{"zk", "zk:1"}}.Normalize()
	if err != nil || !slices.Equal(c.Servers, []string{"zk:2181", "zk:1"}) || c.SessionTimeout != 10*time.Second ||
		c.ConnectTimeout != 2*time.Second || c.MaxPacket != 0xfffff || c.MaxListing != 64<<20 || c.Logger == nil {
		t.Errorf("%+v, %v", c, err)
	}
}

// The zero operation, which a conversion of an unknown kind returns, is refused like a bad path.
func TestOperations(t *testing.T) {
	for _, op := range []recipes.Op{
		{}, {Path: "/a"}, recipes.Create("a", nil), recipes.Set("/", nil, 0), recipes.Delete("/a", -2),
	} {
		if err := op.Validate(); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("%q %+v: %v", op.Kind(), op, err)
		}
	}
	for want, op := range map[string]recipes.Op{
		"create": recipes.Create("/a", nil), "set": recipes.Set("/a", nil, 0), "delete": recipes.Delete("/a", recipes.AnyVersion),
	} {
		if err := op.Validate(); err != nil || op.Kind() != want {
			t.Errorf("%s: %q, %v", want, op.Kind(), err)
		}
	}
}
