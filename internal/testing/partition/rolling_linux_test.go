package partition_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/fourletter"
)

// TestRollingUpgrade replaces the ZooKeeper of each server by another version and back, one
// server at a time and the leader last, as operators do. The load and the checks are those of
// TestPartition. No client is frozen, so two clients must never consider a lock held at the
// same time.
func TestRollingUpgrade(t *testing.T) {
	homes := strings.Fields(os.Getenv(rollingEnv))
	if len(homes) != 2 {
		t.Skip("run it with .ci/suite rolling")
	}
	var versions []ensemble.Installation
	for _, home := range []string{homes[1], homes[0]} { // ZOOKEEPER_HOME keeps the last one, with which the servers start
		t.Setenv("ZOOKEEPER_HOME", home)
		version, err := ensemble.Find()
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, version)
	}
	r := newRun(t)
	r.begin()
	for _, version := range versions {
		r.upgrade(version)
	}
	r.stop()
	if r.check() > 0 {
		r.Error("two clients considered a lock held at the same time")
	}
}

// upgrade restarts all servers with that version.
func (r *run) upgrade(to ensemble.Installation) {
	ctx, cancel := context.WithTimeout(r.Context(), settling)
	defer cancel()
	leader := must(r.ensemble.Leader(ctx))
	for _, s := range r.ensemble.Servers() {
		if s != leader {
			r.replace(ctx, "follower", s, to)
		}
	}
	r.replace(ctx, "leader", leader, to)
}

func (r *run) replace(ctx context.Context, role string, s *ensemble.Server, to ensemble.Installation) {
	f := fault{who: role, how: "replaced by " + to.Version, start: now()}
	if err := s.Kill(); err != nil {
		r.Fatal(err)
	}
	s.Install(to)
	if err := s.Restart(ctx); err != nil {
		r.Log(err) // revive tries again
	}
	r.revive(ctx, f)
	if version := fourletter.Pairs(must(s.Word(ctx, "mntr")), "\t")["zk_version"]; !strings.HasPrefix(version, to.Version) {
		r.Errorf("the %s runs %s, not %s", role, version, to.Version)
	}
	f.end = now()
	r.settle(ctx, f)
}
