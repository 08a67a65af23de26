package plugin_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/server"
)

// TestProtocolPageIsTrue: what the page for writers of hosts says is what the
// code does. Names that it gives may never vanish.
func TestProtocolPageIsTrue(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page, table := read("proto/PROTOCOL.md"), read("rpc/wire/reason.go")

	rows := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| ([A-Z_]+) \\|").FindAllStringSubmatch(page, -1)
	if len(rows) < 10 {
		t.Fatalf("%d reasons", len(rows))
	}
	for _, row := range rows {
		code := strings.ReplaceAll(row[2], "_", "")
		if !regexp.MustCompile(`(?i)"` + row[1] + `", codes\.` + code + `\}`).MatchString(table) {
			t.Errorf("%s with %s is not in the table of reasons", row[1], row[2])
		}
	}
	handshake := plugin.Handshake()
	for _, want := range []string{
		handshake.MagicCookieKey, handshake.MagicCookieValue, plugin.LogLevelEnv, plugin.ReattachEnv,
		"1|<protocol version>|unix|",
		fmt.Sprintf("%d MiB", server.MaxMessage>>20), fmt.Sprintf("most %d sessions", server.MaxSessions),
		fmt.Sprintf("at most %d grants", server.MaxGrants), fmt.Sprintf("%d streams", server.MaxWatches),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
