package main

import (
	"errors"
	"hash/adler32"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// An ephemeral znode whose session no server knows: the last transaction of each server's log creates
// it, and no transaction has created the session. ZooKeeper 3.8.0 does this: the server that starts to
// lead deletes the znode in its own tree, without a transaction. The followers keep it for ever, and a
// client cannot delete it, because the leader refuses. In their answers to dump, only the owners of
// znodes have the session.
func TestDoctorFindsOrphans(t *testing.T) {
	const orphan, session = "/cron/lock-0000000000", 0x1000ab
	cfg := ensembletest.Quick(3)
	cfg.MaxSessionTimeout = time.Second
	e := ensembletest.Start(t, cfg)
	run := func(want int, command string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), command, args...)
		said, err := cmd.CombinedOutput()
		if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%s: exit code %d; want %d: %s", args, code, want, said)
		}
		return said
	}
	run(0, "zkrecipes", "lock", "-servers", e.Connect(), "-once-per", "1h", "/cron", "--", "true") // its record keeps /cron
	for _, s := range e.Servers() {
		must.Do(t, s.Kill())
	}
	for _, s := range e.Servers() {
		appendEphemeral(t, s.DataDir(), orphan, session)
	}
	var starting errgroup.Group
	for _, s := range e.Servers() {
		starting.Go(func() error { return s.Restart(t.Context()) })
	}
	must.Do(t, starting.Wait())
	expired := time.Now().Add(cfg.MaxSessionTimeout + 2*cfg.TickTime)
	leader := must.Get(e.Leader(t.Context()))(t)
	<-time.After(time.Until(expired))

	var followers []*ensemble.Server
	var at []string
	for _, s := range e.Servers() {
		run(map[bool]int{true: 0, false: exit.Timeout}[s == leader], "zkrecipes", "lock", "-servers", s.Addr(), "-try", "/cron", "--", "true")
		if s != leader {
			followers, at = append(followers, s), append(at, s.Addr())
		}
	}
	said := string(run(0, "zkrecipes", "doctor", "-read-only", "-servers", e.Connect(), "/cron"))
	for _, want := range []string{
		"/cron: " + orphan + " belongs to the session 0x1000ab, which no server knows: nothing will delete it at " + strings.Join(at, ", ") + ", and",
		"delete " + orphan, "version-2",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	for _, s := range followers {
		// What doctor advises: here the leader has nothing to delete.
		refused := run(1, e.Installation().Java, "-cp", e.Installation().Classpath, "org.apache.zookeeper.ZooKeeperMain", "-server", s.Addr(), "delete", orphan)
		if !strings.Contains(string(refused), "Node does not exist: "+orphan) {
			t.Errorf("%s", refused)
		}
		must.Do(t, s.Kill())
		must.Do(t, s.Forget())
		must.Do(t, s.Restart(t.Context()))
		run(0, "zkrecipes", "lock", "-servers", s.Addr(), "-try", "/cron", "--", "true")
	}
	if said = string(run(0, "zkrecipes", "doctor", "-read-only", "-servers", e.Connect(), "/cron")); strings.Contains(said, "no server knows") {
		t.Error(said)
	}
}

// appendEphemeral appends a transaction to the log of a server that does not run: a session creates an
// ephemeral znode.
func appendEphemeral(t *testing.T, dataDir, path string, session int64) {
	t.Helper()
	logs := must.Get(txnlog.Find(dataDir))(t).Logs
	f := must.Get(os.OpenFile(logs[len(logs)-1].Name, os.O_RDWR, 0))(t)
	defer f.Close()
	log, _, err := txnlog.Open(f)
	must.Do(t, err)
	var last txnlog.Header
	var end int64
	for err = log.Next(); err == nil; err = log.Next() {
		last, end = log.Header(), log.Offset()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var txn jute.Encoder
	txn.Int64(session)
	txn.Int32(1) // the client's number of the request
	txn.Int64(last.Zxid + 1)
	txn.Int64(last.Time)
	txn.Int32(int32(txnlog.Create))
	txn.String(path)
	txn.Buffer(nil)
	txn.ACLs(jute.ACL{Perms: 31, Scheme: "world", ID: "anyone"})
	txn.Bool(true)           // ephemeral
	const children = 1 << 10 // the version of the parent, greater than any before
	txn.Int32(children)
	var record jute.Encoder
	record.Int64(int64(adler32.Checksum(txn.Bytes)))
	record.Buffer(txn.Bytes)
	must.Get(f.WriteAt(append(record.Bytes, 'B'), end))(t)
}
