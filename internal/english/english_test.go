package english_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		n          int
		noun, want string
	}{
		{0, "znode", "0 znodes"},
		{1, "znode", "1 znode"},
		{2, "znode", "2 znodes"},
		{1, "wait queue", "1 wait queue"},
		{21, "wait queue", "21 wait queues"},
		{1, "more watch", "1 more watch"},
		{3, "more watch", "3 more watches"},
		{2, "process", "2 processes"},
		{2, "address", "2 addresses"},
	} {
		if got := english.Count(tt.n, tt.noun); got != tt.want {
			t.Errorf("Count(%d, %q) = %q; want %q", tt.n, tt.noun, got, tt.want)
		}
	}
	if got := english.Count(int64(1), "byte"); got != "1 byte" {
		t.Error(got)
	}
}
