package audit_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

var update = flag.Bool("update", false, "record testdata/audit again")

// turn waits for a grant, and returns it with the function that gives it back.
type turn func(context.Context) (recipes.Grant, func(context.Context) error, error)

// queues are the wait queues of each recipe in each dialect, with the names that the audit must
// give them.
var queues = []struct {
	path, kind, dialect string
	at                  func(s recipes.Client, path string, joined func(recipes.Place)) turn
}{
	{"/handoff", "lock", "zookeeper", lockBy(recipes.Handoff, "")},
	{"/herd", "lock", "zookeeper", lockBy(recipes.Herd, "")},
	{"/curator", "lock", "zookeeper", lockBy("", recipes.Curator)},
	{"/kazoo", "lock", "kazoo", lockBy("", recipes.Kazoo)},
	{"/election", "election", "zookeeper", electionBy(recipes.ZooKeeper)},
	{"/latch", "election", "curator", electionBy(recipes.Curator)},
	{"/shared", "shared-lock", "zookeeper", sharedBy(recipes.ZooKeeper)},
	{"/shared-curator", "shared-lock", "curator", sharedBy(recipes.Curator)},
	{"/shared-kazoo", "lock", "kazoo", sharedBy(recipes.Kazoo)},
	{"/semaphore", "semaphore", "zookeeper", semaphoreBy(recipes.ZooKeeper)},
	{"/semaphore-curator/leases", "semaphore", "zookeeper", semaphoreBy(recipes.Curator)},
	{"/semaphore-kazoo", "semaphore", "kazoo", semaphoreBy(recipes.Kazoo)},
	{"/slots", "semaphore", "zookeeper", func(s recipes.Client, path string, joined func(recipes.Place)) turn {
		return turnOf(made(s.Slots(path, recipes.SemaphoreConfig{Permits: 1, Joined: joined})).Acquire, recipes.SlotHold.Release)
	}},
	{"/priority", "priority-lock", "zookeeper", func(s recipes.Client, path string, joined func(recipes.Place)) turn {
		return turnOf(made(s.PriorityLock(path, recipes.PriorityLockConfig{Joined: joined})).AcquireWrite, recipes.PriorityHold.Release)
	}},
}

func made[R any](r R, err error) R {
	if err != nil {
		panic(err)
	}
	return r
}

func turnOf[G recipes.Grant](acquire func(context.Context) (G, error), release func(G, context.Context) error) turn {
	return func(ctx context.Context) (recipes.Grant, func(context.Context) error, error) {
		g, err := acquire(ctx)
		return g, func(ctx context.Context) error { return release(g, ctx) }, err
	}
}

func lockBy(strategy recipes.Strategy, d recipes.Dialect) func(recipes.Client, string, func(recipes.Place)) turn {
	return func(s recipes.Client, path string, joined func(recipes.Place)) turn {
		return turnOf(made(s.Lock(path, recipes.LockConfig{Strategy: strategy, Dialect: d, Joined: joined})).Acquire, recipes.Hold.Release)
	}
}

func electionBy(d recipes.Dialect) func(recipes.Client, string, func(recipes.Place)) turn {
	return func(s recipes.Client, path string, joined func(recipes.Place)) turn {
		campaign := func(ctx context.Context) (recipes.Leadership, error) {
			return made(s.Election(path, recipes.ElectionConfig{Dialect: d, Joined: joined})).Campaign(ctx, nil)
		}
		return turnOf(campaign, recipes.Leadership.Resign)
	}
}

func sharedBy(d recipes.Dialect) func(recipes.Client, string, func(recipes.Place)) turn {
	return func(s recipes.Client, path string, joined func(recipes.Place)) turn {
		return turnOf(made(s.SharedLock(path, recipes.SharedLockConfig{Dialect: d, Joined: joined})).AcquireWrite, recipes.SharedHold.Release)
	}
}

func semaphoreBy(d recipes.Dialect) func(recipes.Client, string, func(recipes.Place)) turn {
	return func(s recipes.Client, path string, joined func(recipes.Place)) turn {
		path = strings.TrimSuffix(path, "/leases")
		return turnOf(made(s.Semaphore(path, recipes.SemaphoreConfig{Permits: 1, Dialect: d, Joined: joined})).Acquire, recipes.Hold.Release)
	}
}

// TestTheRecipesOnARealServer: two sessions take turns in each recipe, and the audit of the server's
// log shows the turns that they had, with the tokens that they got.
func TestTheRecipesOnARealServer(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(1))
	ctx := t.Context()
	first, second := open(t, e), open(t, e)
	tokens := map[string][]int64{}
	for _, q := range queues {
		h, release, err := q.at(first, q.path, nil)(ctx)
		must.Do(t, err)
		joined := make(chan recipes.Place, 1)
		tokens[q.path] = []int64{int64(h.Token())}
		ended := make(chan error, 1)
		go func() {
			h, release, err := q.at(second, q.path, func(p recipes.Place) { joined <- p })(ctx)
			if err == nil {
				tokens[q.path] = append(tokens[q.path], int64(h.Token()))
				err = release(ctx)
			}
			ended <- err
		}()
		<-joined
		must.Do(t, release(ctx))
		must.Do(t, <-ended)
	}
	r, holds := auditFiles(t, e, "/")
	noHandoff := strings.HasPrefix(e.Installation().Version, "3.4.") // 3.4 has no create2
	for _, q := range queues {
		at := slices.IndexFunc(r.Lines, func(l *audit.Line) bool { return l.Path == q.path })
		if at < 0 {
			t.Errorf("there is no line %s", q.path)
			continue
		}
		l := r.Lines[at]
		most := 1
		if strings.HasSuffix(q.path, "/leases") {
			most = 2 // the second session may create its lease, and wait, before the first one releases
		}
		if l.Kind != q.kind || l.Dialect != q.dialect || l.Grants != 2 || l.Most < 1 || l.Most > most || l.Holding+l.Waiting > 0 || q.path == "/handoff" && l.Ended["handoff"] != 2 && !noHandoff {
			t.Errorf("%+v", *l)
		}
		var got []int64
		for _, h := range holds {
			if h.Line == q.path {
				got = append(got, h.Token)
			}
		}
		if !slices.Equal(got, tokens[q.path]) {
			t.Errorf("%s: the tokens are %d, the sessions got %d", q.path, got, tokens[q.path])
		}
	}
	if len(r.Violations)+len(r.Events)+len(r.Gaps) > 0 {
		t.Errorf("violations %+v, events %+v, gaps %q", r.Violations, r.Events, r.Gaps)
	}
}

// TestPlantedViolationsOnARealServer: an operator deletes the znode of a holder, a lock of kazoo is
// granted beside one of ours, and a session expires while it holds.
func TestPlantedViolationsOnARealServer(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(1))
	ctx := t.Context()
	operator, events, err := zk.Connect(e.Addrs(), time.Minute, zk.WithLogInfo(false))
	must.Do(t, err)
	defer operator.Close()
	go func() {
		for range events { // until Close
		}
	}()
	dying, die := context.WithCancel(ctx)
	s := open(t, e)
	hold := func(path string) recipes.Hold {
		return must.Get(must.Get(s.Lock(path, recipes.LockConfig{}))(t).Acquire(ctx))(t)
	}
	ordinary := hold("/ordinary")
	waits := make(chan error, 1)
	joined := make(chan recipes.Place, 1)
	go func() {
		_, release, err := lockBy("", "")(s, "/ordinary", func(p recipes.Place) { joined <- p })(ctx)
		if err == nil {
			err = release(ctx)
		}
		waits <- err
	}()
	<-joined
	must.Do(t, ordinary.Release(ctx))
	must.Do(t, <-waits)
	broken := hold("/broken")
	must.Do(t, operator.Delete(broken.Znode(), -1))
	beside := hold("/beside")
	foreign := must.Get(operator.Create(fmt.Sprintf("/beside/%032x__lock__", 1), nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)))(t)
	<-beside.Done() // the holder has noticed the other contender
	dies, deaths, err := zk.Connect(e.Addrs(), 3*time.Second, zk.WithLogInfo(false), zk.WithDialer(func(network, addr string, timeout time.Duration) (net.Conn, error) {
		if dying.Err() != nil {
			return nil, net.ErrClosed
		}
		c, err := net.DialTimeout(network, addr, timeout)
		if err == nil {
			context.AfterFunc(dying, func() { c.Close() })
		}
		return c, err
	}))
	must.Do(t, err)
	defer dies.Close()
	go func() {
		for range deaths { // until Close
		}
	}()
	must.Get(operator.Create("/expired", nil, 0, zk.WorldACL(zk.PermAll)))(t)
	must.Get(dies.CreateProtectedEphemeralSequential("/expired/lock-", nil, zk.WorldACL(zk.PermAll)))(t)
	die()
	for {
		names, _, changed, err := operator.ChildrenW("/expired")
		must.Do(t, err)
		if len(names) == 0 {
			break
		}
		<-changed
	}
	must.Do(t, operator.Delete(foreign, -1)) // more than a second after the znode's creation, because of the session timeout
	if *update {
		record(t, e)
	}
	r, _ := auditFiles(t, e, "/")
	for kind, path := range map[string]string{audit.Broken: "/broken", audit.Beside: "/beside", audit.Expired: "/expired"} {
		if !slices.ContainsFunc(slices.Concat(r.Violations, r.Events), func(f audit.Finding) bool { return f.Kind == kind && f.Line == path }) {
			t.Errorf("there is no finding %s at %s: %+v %+v", kind, path, r.Violations, r.Events)
		}
	}
}

// record copies the log of a server to the testdata of the project, for docs/tool.md. It shortens the
// zeros that the server has allocated.
func record(t *testing.T, e *ensemble.Ensemble) {
	log := must.Get(os.ReadFile(filepath.Join(e.Server(0).DataDir(), "log.1")))(t)
	log = append(bytes.TrimRight(log, "\x00"), make([]byte, 64)...)
	must.Do(t, os.WriteFile(filepath.Join("..", "..", "testdata", "audit", "log.1"), log, 0o644))
}

func open(t *testing.T, e *ensemble.Ensemble) recipes.Client {
	s := must.Get(zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: e.Addrs(), SessionTimeout: 10 * time.Second}))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// auditFiles audits the files of a running server.
func auditFiles(t *testing.T, e *ensemble.Ensemble, path string) (*audit.Report, []audit.Hold) {
	var holds []audit.Hold
	files := must.Get(txnlog.Find(e.Server(0).DataDir()))(t)
	return must.Get(audit.Audit(t.Context(), files, audit.Config{Path: path, Hold: func(h audit.Hold) error { holds = append(holds, h); return nil }}))(t), holds
}
