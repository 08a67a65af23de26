package session_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// A name shows whether this library created the znode. No other library's names do.
func TestOurNames(t *testing.T) {
	mine, other := session.NewGUID().String(), uuid.NewString()
	if mine == session.NewGUID().String() {
		t.Error("the same GUID twice")
	}
	hex := func(guid string) string { return strings.ReplaceAll(guid, "-", "") }
	for name, want := range map[string]bool{
		"_c_" + mine + "-lock-0000000001":            true,
		"_c_" + mine + "-__lock__0000000001":         true,
		hex(mine):                                    true,
		"_c_" + other + "-lock-0000000001":           false, // Curator
		"_c_" + hex(mine) + "-lock-0000000001":       false, // go-zookeeper: sixteen random bytes
		hex(other):                                   false, // kazoo
		hex(mine) + "__lock__0000000001":             false,
		mine:                                         false, // Curator's members
		"lock-0000000001":                            false,
		"_c_":                                        false,
		"_c_" + mine[:35] + "x-lock-0000000001":      false,
		"_c_{" + mine[:34] + "}-lock-0000000001":     false,
		"_c_urn:uuid:" + mine + "-lock-0000000001":   false,
		strings.ToUpper("_C_") + mine + "-lock-0001": false,
	} {
		if got := session.Ours(name); got != want {
			t.Errorf("%s: %v; want %v", name, got, want)
		}
	}
}
