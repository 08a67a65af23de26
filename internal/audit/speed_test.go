package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/testing/logtest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// busyLog writes a log of about that size: turns of 100 contenders in each of 10 lines, and as many
// writes of other programs, of 200 bytes.
func busyLog(tb testing.TB, size int) (file string, grants int) {
	h := history{logtest.NewLog(0)}
	data := bytes.Repeat([]byte("x"), 200)
	path := func(line, n int) string { return fmt.Sprintf("/locks/l%d/lock-%010d", line, n) }
	var heads, tails [10]int
	for i := 0; len(h.Bytes) < size; i++ {
		line := i % 10
		h.Time++
		session := int64(line*1000 + tails[line]%100 + 1)
		h.Txn(session, 1, txnlog.Change{Type: txnlog.Create, Path: []byte(path(line, tails[line])), Data: data[:40], Ephemeral: true})
		if tails[line]++; tails[line]-heads[line] > 100 {
			head := path(line, heads[line])
			h.Txn(int64(line*1000+heads[line]%100+1), 2, txnlog.Change{Type: txnlog.SetData, Path: []byte(head)}, txnlog.Change{Type: txnlog.Delete, Path: []byte(head)})
			heads[line]++
			grants++
		}
		for range 4 {
			h.Txn(7, 3, txnlog.Change{Type: txnlog.SetData, Path: []byte("/app/state"), Data: data})
		}
	}
	file = filepath.Join(tb.TempDir(), "log.1")
	must.Do(tb, os.WriteFile(file, h.Bytes, 0o644))
	return file, grants
}

// BenchmarkAudit measures the audit of a busy log. The goal is 1 GiB in 20 s on two processors:
// 54 MB/s.
func BenchmarkAudit(b *testing.B) {
	const size = 64 << 20
	file, grants := busyLog(b, size)
	b.SetBytes(size)
	for b.Loop() {
		r := must.Get(audit.Audit(b.Context(), must.Get(txnlog.Find(file))(b), audit.Config{Path: "/locks"}))(b)
		found := 0
		for _, l := range r.Lines {
			found += l.Grants
		}
		if found < grants || len(r.Violations) > 0 {
			b.Fatalf("%d grants, want %d; %+v", found, grants, r.Violations)
		}
	}
}

// TestMemoryDoesNotGrowWithTheLogs: at the end of 32 MiB, the audit keeps a fraction of that.
func TestMemoryDoesNotGrowWithTheLogs(t *testing.T) {
	const size = 32 << 20
	file, _ := busyLog(t, size)
	files := must.Get(txnlog.Find(file))(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/locks", Progress: func(read, total int64) {
		if read == total {
			runtime.GC()
			runtime.ReadMemStats(&after)
		}
	}}))(t)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); after.HeapAlloc == 0 || grown > size/4 {
		t.Errorf("the audit of %d bytes keeps %d", size, grown)
	}
}
