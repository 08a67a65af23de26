package zkrecipes_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
)

// pkg.go.dev shows documentation only where it detects the licence, and detects
// the standard text to the byte.
func TestTheLicenceIsTheStandardText(t *testing.T) {
	text, err := os.ReadFile("LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	// As the Apache Software Foundation publishes it, and Debian's base-files.
	const standard = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
	if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != standard {
		t.Errorf("LICENSE has the checksum %s, the standard text has %s", got, standard)
	}
}
