package main

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// doctor reports why locks are slow on servers that compute digests by another algorithm.
func TestDoctorMeetsAnotherDigest(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties = map[string]string{"zookeeper.DigestAuthenticationProvider.digestAlg": "SHA3-256"}
	cmd := exec.CommandContext(t.Context(), "zkrecipes", "doctor")
	cmd.Env = append(os.Environ(), "ZKRECIPES_SERVERS="+ensembletest.Start(t, cfg).Server(0).Addr())
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(`(?m)^warn +handoff .*a release does not grant the lock to the next contender`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}

// doctor warns about ClickHouse Keeper, and names what has shown it.
func TestDoctorMeetsKeeper(t *testing.T) {
	for _, like := range zkserver.Keepers() {
		server := must.Get(zkserver.Listen(zkserver.Config{Like: like}))(t)
		t.Cleanup(func() { server.Close() })
		run := func(want int, env ...string) string {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), "zkrecipes", "doctor")
			cmd.Env = append(append(os.Environ(), "ZKRECIPES_SERVERS="+server.Addr()), env...)
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Errorf("%v: exit code %d, want %d\n%s", like, got, want, out)
			}
			return string(out)
		}
		for _, chroot := range []string{"", "/apps"} {
			out := run(0, "ZKRECIPES_CHROOT="+chroot)
			for _, want := range []string{
				`(?m)^warn +keeper .* this is ClickHouse Keeper, as these show: its session's id and password, srvr \(v?` + like.Recorded() + `.*\), /keeper$`,
				`guarded writes`, `(?m)^ok +lock `,
			} {
				if !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("%v: %s is missing in\n%s", like, want, out)
				}
			}
			if regexp.MustCompile(`(?m)^(warn|fail) +handoff`).MatchString(out) {
				t.Errorf("%v: handoff is a finding:\n%s", like, out)
			}
		}
		if out := run(1, "ZKRECIPES_ZOOKEEPER_ONLY=true"); !regexp.MustCompile(`(?m)^fail +zookeeper .*ClickHouse Keeper.*zookeeper_only`).MatchString(out) {
			t.Errorf("%v, refused:\n%s", like, out)
		}
	}
}
