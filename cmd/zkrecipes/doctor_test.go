package main

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
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
