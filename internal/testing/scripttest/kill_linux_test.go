package scripttest

import "testing"

func TestOnlyTheScriptsOwnProcessesAreKilled(t *testing.T) {
	for environ, want := range map[string]bool{
		"WORK=/tmp/script-queue\x00A=b\x00":        true,
		"WORK=/tmp/script-queue":                   true,
		"A=b\x00TMP=/tmp/script-queue/.tmp\x00":    true,
		"WORK=/tmp/script-queue_put\x00":           false,
		"TMP=/tmp/script-queue_put/.tmp\x00A=\x00": false,
		"HOME=/tmp/script-queue/home":              true,
		"":                                         false,
	} {
		if got := names([]byte(environ), "/tmp/script-queue"); got != want {
			t.Errorf("%q: %v; want %v", environ, got, want)
		}
	}
}
