package txnlog_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

var update = flag.Bool("update", false, "record the files of the installed ZooKeeper in testdata")

// TestTheFilesOfARealServer: a server writes its files, and they contain what the clients have
// done. With -update the files go to testdata, for TestGoldenFiles.
func TestTheFilesOfARealServer(t *testing.T) {
	ensembletest.Require(t)
	cfg := ensembletest.Quick(1)
	// Servers of 3.4 write no snapshot when they start. With this they write one after 5 to 8
	// transactions, and begin another log.
	old := strings.HasPrefix(must.Get(ensemble.Find())(t).Version, "3.4.")
	if old {
		cfg.SystemProperties["zookeeper.snapCount"] = "8"
	}
	e := ensembletest.Start(t, cfg)
	version := e.Installation().Version
	perform(t, e, version)
	must.Do(t, e.Server(0).Kill())
	written := must.Get(filepath.Glob(filepath.Join(e.Server(0).DataDir(), "*.*")))(t)
	golden := filepath.Join("testdata", version)
	if *update {
		record(t, golden, written)
	}
	want, err := os.ReadFile(filepath.Join(golden, "content.txt"))
	if errors.Is(err, os.ErrNotExist) {
		want, err = os.ReadFile(filepath.Join("testdata", "3.9.6", "content.txt"))
	}
	must.Do(t, err)
	got := dump(t, written)
	if old { // a random number decides when it begins the other log
		got, want = records(got), records(want)
	}
	if !bytes.Equal(got, want) && !bytes.Equal(got, expiryFirst.ReplaceAll(want, []byte("$1$4$3$2"))) {
		t.Errorf("the files of %s contain\n%s\nwant\n%s", version, got, want)
	}
}

// expiryFirst matches the third session, and the expiry of the first. On a busy machine they come in
// the other order.
var expiryFirst = regexp.MustCompile(`( 0x\w+ )(type -10 of session3 .*\n.*\n *)(0x\w+ )(type -11 of session1 .*\n.*\n *)`)

// record replaces a folder of testdata.
func record(t *testing.T, golden string, written []string) {
	must.Do(t, os.RemoveAll(golden))
	must.Do(t, os.MkdirAll(golden, 0o755))
	for _, file := range written {
		content := must.Get(os.ReadFile(file))(t)
		if data := bytes.TrimRight(content, "\x00"); len(data)+64 < len(content) {
			content = content[:len(data)+64] // of the allocation
		}
		must.Do(t, os.WriteFile(filepath.Join(golden, filepath.Base(file)), content, 0o644))
	}
	must.Do(t, os.WriteFile(filepath.Join(golden, "content.txt"), dump(t, written), 0o644))
}

// TestAReconfigurationOfARealServer: an operator removes a server from an ensemble between two
// turns of a lock. The log of another server records that as a change of /zookeeper/config.
func TestAReconfigurationOfARealServer(t *testing.T) {
	ensembletest.Require(t)
	if version := must.Get(ensemble.Find())(t).Version; strings.HasPrefix(version, "3.4.") {
		t.Skipf("%s cannot be reconfigured", version)
	}
	cfg := ensembletest.Quick(3)
	cfg.Properties = map[string]string{"reconfigEnabled": "true"}
	// super:secret may reconfigure.
	cfg.SystemProperties["zookeeper.DigestAuthenticationProvider.superDigest"] = zk.DigestACL(zk.PermAll, "super", "secret")[0].ID
	e := ensembletest.Start(t, cfg)
	leader := slices.Index(e.Servers(), must.Get(e.Leader(t.Context()))(t))
	c, _, err := zk.Connect([]string{e.Server(leader).Addr()}, 10*time.Second, zk.WithLogInfo(false), zk.WithEventCallback(func(zk.Event) {}))
	must.Do(t, err)
	defer c.Close()
	must.Do(t, c.AddAuth("digest", []byte("super:secret")))
	must.Get(c.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)))(t)
	turn := func() {
		place := must.Get(c.Create("/a/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)))(t)
		must.Do(t, c.Delete(place, 0))
	}
	turn()
	removed := fmt.Sprint((leader+1)%3 + 1)
	must.Get(c.IncrementalReconfig(nil, []string{removed}, -1))(t)
	turn()
	must.Do(t, e.Server(leader).Kill())
	written := must.Get(filepath.Glob(filepath.Join(e.Server(leader).DataDir(), "*.*")))(t)
	if *update {
		record(t, filepath.Join("testdata", e.Installation().Version+"-reconfig"), written)
	}
	got := string(dump(t, written))
	change := regexp.MustCompile(`type 16 of session1 by the client, time true\n    5 /zookeeper/config "(.*)" version -?\d+ `).FindStringSubmatch(got)
	if change == nil || strings.Count(change[1], "server.") != 2 || strings.Contains(change[1], "server."+removed) {
		t.Errorf("no change of the configuration without server %s in\n%s", removed, got)
	}
}

// TestGoldenFiles reads the files that servers of four versions have written, two of them after a
// reconfiguration too.
func TestGoldenFiles(t *testing.T) {
	versions := must.Get(filepath.Glob(filepath.Join("testdata", "3.*")))(t)
	if len(versions) < 6 {
		t.Fatalf("the versions are %q", versions)
	}
	for _, version := range versions {
		want := must.Get(os.ReadFile(filepath.Join(version, "content.txt")))(t)
		if got := dump(t, must.Get(filepath.Glob(filepath.Join(version, "*.[0-9a-f]*")))(t)); !bytes.Equal(got, want) {
			t.Errorf("%s contains\n%s\nwant\n%s", version, got, want)
		}
	}
}

// perform makes every kind of transaction that a client of a standalone server can cause.
func perform(t *testing.T, e *ensemble.Ensemble, version string) {
	all := zk.WorldACL(zk.PermAll)
	expires, closes := connect(t, e, time.Second), connect(t, e, time.Second)
	path := must.Get(closes.Create("/a", []byte("data"), 0, all))(t)
	must.Get(closes.Create(path, nil, 0, all)) // fails, which is logged
	place := must.Get(closes.Create("/a/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, all))(t)
	must.Get(expires.Create("/a/lock-", []byte("x"), zk.FlagEphemeral|zk.FlagSequence, all))(t)
	must.Get(closes.Set(path, []byte("other"), 0))(t)
	must.Get(closes.SetACL(path, all, 0))(t)
	if version[:3] != "3.4" {
		must.Get(closes.CreateContainer("/container", nil, zk.FlagContainer, all))(t)
		must.Get(closes.CreateTTL("/ttl", nil, zk.FlagTTL, all, time.Hour))(t)
	}
	must.Get(closes.Multi(
		&zk.CheckVersionRequest{Path: place}, &zk.SetDataRequest{Path: place, Data: []byte("released")}, &zk.DeleteRequest{Path: place, Version: -1},
		&zk.CreateRequest{Path: "/b", Data: []byte{}, Acl: all}))(t)
	if _, err := closes.Multi(&zk.DeleteRequest{Path: "/b", Version: -1}, &zk.CheckVersionRequest{Path: "/b", Version: 7}); err == nil {
		t.Fatal("a transaction that must fail has not")
	}
	must.Get(closes.Create("/a/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, all))(t)
	closes.Close()
	must.Do(t, e.Server(0).Kill())
	expires.Close()
	must.Do(t, e.Server(0).Restart(t.Context())) // the restart writes a snapshot
	watches := connect(t, e, time.Second)
	for names, changed, err := listW(watches, path); len(names) > 0; names, changed, err = listW(watches, path) {
		must.Do(t, err)
		<-changed
	}
	must.Do(t, watches.Delete("/b", 0))
	watches.Close()
}

func listW(c *zk.Conn, path string) ([]string, <-chan zk.Event, error) {
	names, _, changed, err := c.ChildrenW(path)
	return names, changed, err
}

func connect(t *testing.T, e *ensemble.Ensemble, timeout time.Duration) *zk.Conn {
	c, events, err := zk.Connect(e.Addrs(), timeout, zk.WithLogInfo(false))
	must.Do(t, err)
	t.Cleanup(c.Close)
	for event := range events {
		if event.State == zk.StateHasSession {
			go func() {
				for range events { // the client closes it
				}
			}()
			return c
		}
	}
	t.Fatal("no session")
	return nil
}

// dump shows what files contain, in the order of their names. Sessions are numbered as they appear,
// and what differs from run to run is omitted.
func dump(t *testing.T, files []string) []byte {
	t.Helper()
	var b bytes.Buffer
	sessions := map[int64]int{}
	session := func(id int64) string {
		if id == 0 {
			return "none"
		}
		if sessions[id] == 0 {
			sessions[id] = len(sessions) + 1
		}
		return fmt.Sprint("session", sessions[id])
	}
	slices.Sort(files)
	for _, file := range files {
		base := filepath.Base(file)
		if !strings.HasPrefix(base, "log.") && !strings.HasPrefix(base, "snapshot.") {
			continue
		}
		f := must.Get(os.Open(file))(t)
		defer f.Close()
		log, snapshot, err := txnlog.Open(f)
		must.Do(t, err)
		fmt.Fprintf(&b, "%s\n", base)
		if log != nil {
			must.Do(t, dumpLog(&b, log, session))
			continue
		}
		var lines []string
		must.Do(t, snapshot.Read(
			func(id int64, timeout int32) {
				lines = append(lines, fmt.Sprintf("  %s timeout %d", session(id), timeout))
			},
			func(n *txnlog.Node) {
				if !bytes.HasPrefix(n.Path, []byte("/zookeeper")) && len(n.Path) > 0 {
					owner := fmt.Sprintf("%#x", uint64(n.EphemeralOwner))
					if known := sessions[n.EphemeralOwner]; known > 0 {
						owner = session(n.EphemeralOwner)
					}
					lines = append(lines, fmt.Sprintf("  %s %q czxid %#x mzxid %#x version %d owner %s times %t", n.Path, n.Data, n.Czxid, n.Mzxid, n.Version, owner, n.Ctime > 1e12 && n.Mtime >= n.Ctime))
				}
			}))
		slices.Sort(lines)
		fmt.Fprintln(&b, strings.Join(lines, "\n"))
	}
	return b.Bytes()
}

// records returns the records in a dump.
func records(dump []byte) []byte {
	return regexp.MustCompile(`(?m)^log\..*\n|^snapshot\..*\n(  .*\n|\n)*`).ReplaceAll(dump, nil)
}

func dumpLog(b *bytes.Buffer, log *txnlog.Log, session func(int64) string) error {
	for {
		err := log.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		h := log.Header()
		changes, err := log.Changes(nil)
		if err != nil {
			return err
		}
		by := "client"
		if h.Cxid == 0 {
			by = "server"
		}
		fmt.Fprintf(b, "  %#x type %d of %s by the %s, time %t\n", h.Zxid, h.Type, session(h.Session), by, h.Time > 1e12)
		for _, c := range changes {
			fmt.Fprintf(b, "    %d %s %q version %d ephemeral %t timeout %d deleted %s\n", c.Type, c.Path, c.Data, c.Version, c.Ephemeral, c.Timeout, c.Deleted)
		}
	}
}

// TestACompressedSnapshotOfARealServer: servers since 3.6 can compress snapshots.
func TestACompressedSnapshotOfARealServer(t *testing.T) {
	for _, method := range []string{"gz", "snappy"} {
		cfg := ensembletest.Quick(1)
		cfg.SystemProperties["zookeeper.snapshot.compression.method"] = method
		e := ensembletest.Start(t, cfg)
		if v := e.Installation().Version; strings.HasPrefix(v, "3.4.") || strings.HasPrefix(v, "3.5.") {
			t.Skipf("%s compresses nothing", v)
		}
		c := connect(t, e, time.Minute) // a busy machine loses a short session
		must.Get(c.Create("/large", bytes.Repeat([]byte("0123456789"), 30_000), 0, zk.WorldACL(zk.PermAll)))(t)
		c.Close()
		must.Do(t, e.Server(0).Restart(t.Context()))
		must.Do(t, e.Server(0).Kill())
		written := must.Get(filepath.Glob(filepath.Join(e.Server(0).DataDir(), "snapshot.[1-9]*."+method)))(t)
		if len(written) != 1 {
			t.Fatalf("the compressed snapshots are %q", written)
		}
		if got := string(dump(t, written)); !strings.Contains(got, `/large "01234567890123456789`) {
			t.Errorf("%s contains %.100s", written[0], got)
		}
	}
}
