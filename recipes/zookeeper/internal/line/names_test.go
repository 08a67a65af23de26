package line_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

func TestNamesThatEndWithANumber(t *testing.T) {
	for name, want := range map[string]bool{
		"qn-0000000001": true, "-0000000001": true, "_c_guid-entry-100-0000000001": true,
		"0000000001": false, "qn-000000001": false, "qn-": false, "qn": false, "": false, "-": false, "qn-00000000x1": false,
	} {
		if got := line.Numbered(name); got != want {
			t.Errorf("Numbered(%q) is %v", name, got)
		}
	}
}

func TestGUIDsOfKazoo(t *testing.T) {
	const guid = "0123456789abcdef0123456789abcdef"
	for name, want := range map[string]bool{
		guid: true, guid[1:]: false, guid + "0": false, "g" + guid[1:]: false, "A" + guid[1:]: false, guid[:31] + "-": false, "": false,
	} {
		if got := line.GUID(name); got != want {
			t.Errorf("GUID(%q) is %v", name, got)
		}
	}
}
