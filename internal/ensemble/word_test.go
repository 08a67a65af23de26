package ensemble

import (
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
)

func TestReadAnswerDoesNotWaitForAConnectionThatStaysOpen(t *testing.T) {
	server, client := io.Pipe()
	go client.Write([]byte("This ZooKeeper instance is not currently serving requests\n"))
	if answer, err := readAnswer(server); !errors.Is(err, ErrNotServing) {
		t.Errorf("readAnswer = %q, %v; want ErrNotServing", answer, err)
	}
}

func TestParseMntr(t *testing.T) {
	got := parseMntr("zk_version\t3.8.0-1, built on 2024-06-16\nzk_avg_latency\t0.5\r\nno figure\nzk_empty\t\n")
	want := map[string]string{"zk_version": "3.8.0-1, built on 2024-06-16", "zk_avg_latency": "0.5", "zk_empty": ""}
	if !maps.Equal(got, want) {
		t.Errorf("parseMntr = %q, want %q", got, want)
	}
}

func TestParseMode(t *testing.T) {
	for answer, want := range map[string]Mode{
		"Zxid: 0x0\nMode: follower\nNode count: 5\n": Follower,
		"Mode: leader": Leader,
		"":             "",
		"Zxid: 0x0\n":  "",
	} {
		got, err := parseMode(answer)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("parseMode(%q) = %q, %v; want %q", answer, got, err, want)
		}
	}
}

func TestFormatPropertiesKeepsBackslashes(t *testing.T) {
	got := formatProperties(map[string]string{"tickTime": "200", "dataDir": `C:\temp\new`})
	if want := "dataDir=C:\\\\temp\\\\new\ntickTime=200\n"; got != want {
		t.Errorf("formatProperties = %q, want %q", got, want)
	}
}

func TestLastLines(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"a\n", "a"},
		{"a\nb\nc\n", "b\nc"},
	} {
		if got := lastLines(tt.text, 2); got != tt.want {
			t.Errorf("lastLines(%q, 2) = %q, want %q", tt.text, got, tt.want)
		}
	}
	if strings.Contains(lastLines(strings.Repeat("x\n", 50), errorTail), strings.Repeat("x\n", errorTail)) {
		t.Error("more lines than requested")
	}
}
