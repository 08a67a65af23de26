package repository_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// around is the file into which a block of Go is inserted if it is not a whole program.
const around = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hosttest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

var _ = []any{errors.Is, fmt.Print, log.Print, os.Exit, testing.Short, time.Now, host.Launch, hosttest.New, recipes.Set, zookeeper.Open}

func main() { _ = block }

func block(ctx context.Context, session recipes.Client) (err error) {
	{
		%s
		return err
	}
}
`

func TestGoOfTheDocsCompiles(t *testing.T) {
	dir := t.TempDir()
	for _, page := range pages(t) {
		for i, b := range unmarked(t, page, "go") {
			program := b.text
			if !strings.HasPrefix(program, "package ") {
				program = fmt.Sprintf(around, program)
			}
			file := filepath.Join(dir, fmt.Sprintf("%s%d.go", strings.TrimSuffix(filepath.Base(page), ".md"), i))
			if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s\n%s", b, b.text, out)
			}
		}
	}
}

// A newcomer can build the first program of the guide beside the plugin, and start it.
func TestTheFirstProgramOfTheDocsWritesWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the plugin")
	}
	server, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	dir := t.TempDir()
	program := filepath.Join(dir, "program.go")
	text := strings.ReplaceAll(unmarked(t, "docs/recipes.md", "go")[0].text, "127.0.0.1:2181", server.Addr())
	if err := os.WriteFile(program, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"./cmd/zkrecipes-plugin", program} {
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "program"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if said := strings.Split(strings.TrimSpace(string(out)), "\n"); err != nil || len(said) != 1 || !strings.Contains(said[0], "holding with token") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The test creates the files that a configuration names.
func TestConfigurationOfTheDocsIsRead(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range unmarked(t, page, "hcl") {
			dir := t.TempDir()
			t.Setenv("HOME", dir)
			for name, content := range map[string]string{"config.hcl": b.text, "password": "secret\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := hostconfig.Load(filepath.Join(dir, "config.hcl")); err != nil {
				t.Errorf("%v: %v", b, err)
			}
		}
	}
}

// docs/tool.md shows every setting and every variable that package hostconfig reads.
func TestTheDocsShowTheWholeConfiguration(t *testing.T) {
	shown := ""
	for _, b := range unmarked(t, "docs/tool.md", "hcl") {
		shown += b.text
	}
	sources, err := filepath.Glob("host/hostconfig/*.go")
	if err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile(`hcl:"([a-z_]+),(?:optional|block)"|\{"(ZKRECIPES_[A-Z_]+)"`)
	settings := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range known.FindAllStringSubmatch(string(text), -1) {
			settings++
			name := found[1] + found[2]
			if name != "password" && !regexp.MustCompile(`\b`+name+`\b`).MatchString(shown) { // the setting exists only to be refused
				t.Errorf("docs/tool.md does not show %s", name)
			}
		}
	}
	if settings < 20 {
		t.Errorf("only %d settings were found in package hostconfig", settings)
	}
}
