package scripttest

import "testing"

func TestProcessBelongsToItsScript(t *testing.T) {
	for environ, want := range map[string]bool{
		"WORK=/t/script-queue\x00":        true,
		"A=b\x00WORK=/t/script-queue\x00": true,
		"WORK=/t/script-queue_long\x00":   false,
		"HOME=/t/script-queue/home":       true,
		"":                                false,
	} {
		if names([]byte(environ), "/t/script-queue") != want {
			t.Errorf("%q: want %v", environ, want)
		}
	}
}
