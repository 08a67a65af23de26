package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// result of the tests with a mistake.
type result string

const (
	noticed  result = "noticed"
	survived result = "SURVIVED"
	notBuilt result = "did not compile"
	timedOut result = "timed out"
)

// try runs the tests of a part with one mistake until one fails. by says which.
func try(m mutant, p part) (r result, by string, err error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := plant(m, dir)
	if err != nil {
		return "", "", err
	}
	own := []string{"./" + filepath.Dir(m.file)}
	for _, tests := range append([][]string{own, p.packages}, p.tests...) {
		failed, err := goTest(overlay, tests...)
		switch {
		case err != nil:
			return "", "", err
		case failed == nil:
			continue
		case failed.Action == "build-fail":
			return notBuilt, "", nil
		}
		test := strings.TrimPrefix(failed.Test+" of "+failed.Package, " of ")
		if failed.timedOut {
			return timedOut, " in " + test, nil
		}
		run := "^" + strings.ReplaceAll(regexp.QuoteMeta(failed.Test), "/", "$/^") + "$"
		if failed.Test == "" {
			run = "." // the process ended, or TestMain found a leak
		}
		again, err := goTest("", failed.Package, "-count=1", "-run="+run)
		if err != nil {
			return "", "", err
		}
		if again == nil {
			return noticed, " by " + test, nil
		}
		fmt.Printf("without a mistake, too, this fails: %s\n", test)
	}
	return survived, "", nil
}

// plant writes the file with the mistake to dir, and an overlay that replaces the original by it.
func plant(m mutant, dir string) (overlay string, err error) {
	planted, overlay := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json")
	original, err := filepath.Abs(m.file)
	replace, _ := json.Marshal(map[string]map[string]string{"Replace": {original: planted}}) // strings can be encoded
	return overlay, errors.Join(err, os.WriteFile(planted, []byte(m.text), 0o600), os.WriteFile(overlay, replace, 0o600))
}

// failure is the first event of go test -json about a failure. Without a test, the package has
// failed, or its build.
type failure struct {
	Action, Package, Test string

	timedOut bool
}

// goTest runs go test. It returns nil if all tests pass.
func goTest(overlay string, args ...string) (*failure, error) {
	cmd := exec.Command("go", append([]string{"test", "-json", "-short", "-failfast", "-vet=off"}, args...)...)
	cmd.Env = append(os.Environ(),
		"GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay, // also for binaries that tests build
		"ZKRECIPES_REQUIRE_ZOOKEEPER=",                       // or the contract would need a real server
		"ZKRECIPES_TEST_PATIENCE=1m")                         // a mistake may make a test wait forever
	cmd.Stderr = os.Stderr
	out, failed := cmd.Output()
	if failed == nil {
		return nil, nil
	}
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var e failure
		if err := lines.Decode(&e); err != nil {
			return nil, fmt.Errorf("%v: %w without a test that fails", cmd, failed)
		}
		if e.Action == "fail" || e.Action == "build-fail" {
			e.timedOut = bytes.Contains(out, []byte("panic: test timed out after "))
			return &e, nil
		}
	}
}
