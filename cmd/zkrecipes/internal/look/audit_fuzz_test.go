package look

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/adler32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/logtest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// FuzzAudit audits logs and snapshots with right checksums, in each format. Every report can be
// written, and the exit code does not depend on the format.
func FuzzAudit(f *testing.F) {
	for _, pattern := range []string{"../../../../testdata/audit/log.*", "../../../../internal/txnlog/testdata/*/log.*"} {
		for _, name := range must.Get(filepath.Glob(pattern))(f) {
			log := must.Get(os.ReadFile(name))(f)
			if len(log) > 4<<10 { // a long log only repeats such records
				log = log[:4<<10]
			}
			f.Add(log, []byte{})
		}
	}
	lock := txnlog.Change{Type: txnlog.Create, Path: []byte("/l/lock-0000000002"), Ephemeral: true}
	nodes := logtest.Snapshot(1, 1000, txnlog.Node{Path: []byte("/l"), Data: []byte("permits=2")}, txnlog.Node{Path: []byte("/l/lock-0000000001"), Czxid: 3, EphemeralOwner: 1},
		txnlog.Node{Path: []byte("/q/queue-0000000001"), Czxid: 2}, txnlog.Node{Path: []byte("/q/claims/queue-0000000001-1"), Czxid: 3, EphemeralOwner: 1}, txnlog.Node{Path: []byte("/t/decision"), Data: []byte("abort x\n1")})
	for _, ms := range []int64{1_700_000_000_000, math.MaxInt64, math.MinInt64, 253_402_300_800_000} {
		log := logtest.NewLog(3)
		log.Txn(2, 1, lock)
		log.Time = ms
		log.Txn(1, 0, txnlog.Change{Type: txnlog.CloseSession})
		log.Txn(2, 0, txnlog.Change{Type: txnlog.CloseSession})
		log.Record(txnlog.Header{Zxid: -1, Type: txnlog.Error}, nil)
		f.Add(log.Bytes, nodes)
	}
	dir := f.TempDir()
	page := filepath.Join(dir, "page.html")
	f.Fuzz(func(t *testing.T, log, snapshot []byte) {
		log = repairLog(log)
		must.Do(t, os.WriteFile(filepath.Join(dir, "log.1"), log, 0o600))
		must.Do(t, os.WriteFile(filepath.Join(dir, "snapshot.3"), repairSnapshot(snapshot), 0o600))
		text, stderr, code := runAudit("-holds", "/", dir)
		for _, args := range [][]string{{"-format=json", "-holds"}, {"-html", page}} {
			out, stderr2, code2 := runAudit(append(args, "/", dir)...)
			if code2 != code || (code == 2) != (stderr2 != "") || code > 2 {
				t.Fatalf("exit codes %d and %d of %q\n%s%s%s", code, code2, args, text, stderr, stderr2)
			}
			decoder := json.NewDecoder(strings.NewReader(out))
			for args[0] == "-format=json" {
				if err := decoder.Decode(new(any)); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%v in\n%s", err, out)
				}
			}
		}
	})
}

// repairLog corrects the checksums of the records.
func repairLog(log []byte) []byte {
	log = slices.Clone(log) // the fuzzer owns its bytes
	for rest := log[min(16, len(log)):]; len(rest) > 12+32; {
		n := int(binary.BigEndian.Uint32(rest[8:]))
		if n < 32 || n > len(rest)-13 {
			break
		}
		binary.BigEndian.PutUint64(rest, uint64(adler32.Checksum(rest[12:12+n])))
		rest[12+n] = 'B'
		rest = rest[12+n+1:]
	}
	return log
}

// repairSnapshot corrects the checksum, which is before the last five bytes.
func repairSnapshot(snapshot []byte) []byte {
	const end = 8 + 4 + 1
	at := len(snapshot) - end
	if at < 16 {
		return logtest.Snapshot(1, 1000)
	}
	snapshot = slices.Clone(snapshot)
	binary.BigEndian.PutUint64(snapshot[at:], uint64(adler32.Checksum(snapshot[:at])))
	return snapshot
}
