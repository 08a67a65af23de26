package ensemble

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// fakeJava is an installation whose java is the given shell script.
func fakeJava(t *testing.T, script string) Installation {
	t.Helper()
	sh, err := os.Stat("/bin/sh")
	if err != nil || sh.IsDir() {
		t.Skip("no /bin/sh")
	}
	path := t.TempDir() + "/java"
	must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return Installation{Java: path, Classpath: "none", Source: "a test"}
}

func TestAFailedStartShowsTheLogAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	_, err := Start(t.Context(), Config{
		Dir:          dir,
		Installation: fakeJava(t, "seq 50 99; echo the dog ate the jar >&2; exit 7"),
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"server 1", "exit status 7", "the dog ate the jar"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error without %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "\n50\n") {
		t.Errorf("the whole log, and not its end: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStartFailsAtItsDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Config{Installation: fakeJava(t, "exec sleep 1000")})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start = %v, want a deadline exceeded", err)
	}
}

func TestJavaThatCannotBeRun(t *testing.T) {
	_, err := Start(t.Context(), Config{Installation: Installation{Java: "/nonexistent/java"}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start = %v, want an error that java does not exist", err)
	}
}

func TestInvalidConfigs(t *testing.T) {
	for name, cfg := range map[string]Config{
		"even number of servers": {Servers: 2},
		"negative servers":       {Servers: -1},
		"tick too short":         {TickTime: time.Microsecond},
		"negative heap":          {HeapMiB: -1},
	} {
		if e, err := Start(t.Context(), cfg); err == nil {
			t.Errorf("%s: started", name)
			e.Stop()
		}
	}
}

func TestATakenPortIsRetriedWithOthers(t *testing.T) {
	// A real server logs this if another process listens on its port.
	installation := fakeJava(t, `for cfg; do :; done
if grep -q clientPort=$TAKEN "$cfg"; then echo 'java.net.BindException: Address already in use'; exit 1; fi
echo "not the taken port"; exit 2`)
	t.Setenv("TAKEN", "11111$")
	picks := 0
	pick := func(n int) ([]int, error) {
		picks++
		if picks == 1 {
			return []int{11111, 0, 0, 0}, nil
		}
		return []int{22222, 0, 0, 0}, nil
	}
	_, err := start(t.Context(), Config{Installation: installation}, pick)
	if picks != 2 || err == nil || !strings.Contains(err.Error(), "not the taken port") {
		t.Errorf("after %d picks: %v; want a start with the second pick", picks, err)
	}
}

func TestPickedPortsAreDistinctAndFree(t *testing.T) {
	ports, err := pickPorts(40)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, port := range ports {
		if seen[port] {
			t.Errorf("port %d twice", port)
		}
		seen[port] = true
		l, err := net.Listen("tcp", loopback.address(port))
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		l.Close()
	}
}

func TestFind(t *testing.T) {
	release := tree(t, "lib/zookeeper-3.9.3.jar", "lib/zookeeper-jute-3.9.3.jar", "lib/netty-all.jar")
	old := tree(t, "zookeeper-3.4.14.jar", "lib/netty-3.10.6.jar")
	debian := tree(t, "zookeeper.jar", "zookeeper-3.8.0.jar", "zookeeper-jute-3.8.0.jar", "slf4j-simple.jar")
	empty := tree(t)
	java := tree(t, "bin/java")

	tests := []struct {
		name       string
		home       string
		debian     string
		java       string
		version    string // "" for ErrNotFound
		classpath  []string
		errorNames string
	}{
		{name: "release", home: release, debian: debian, java: java, version: "3.9.3",
			classpath: []string{"lib/netty-all.jar", "lib/zookeeper-3.9.3.jar", "lib/zookeeper-jute-3.9.3.jar"}},
		{name: "old release", home: old, debian: empty, java: java, version: "3.4.14",
			classpath: []string{"lib/netty-3.10.6.jar", "zookeeper-3.4.14.jar"}},
		{name: "Debian", debian: debian, java: java, version: "3.8.0",
			classpath: []string{"zookeeper.jar", "slf4j-simple.jar"}},
		{name: "a home without ZooKeeper is an error", home: empty, debian: debian, java: java,
			errorNames: "ZOOKEEPER_HOME=" + empty},
		{name: "nothing", debian: empty, java: java, errorNames: filepath.Join(empty, "zookeeper.jar")},
		{name: "no Java", debian: debian, java: empty, errorNames: "JAVA_HOME=" + empty},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"ZOOKEEPER_HOME": tt.home, "JAVA_HOME": tt.java}
			got, err := finder{getenv: func(key string) string { return env[key] }, debianJars: tt.debian}.find()
			if tt.version == "" {
				if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), tt.errorNames) {
					t.Errorf("find = %v, want ErrNotFound that names %s", err, tt.errorNames)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			root := tt.debian
			if tt.home != "" {
				root = tt.home
			}
			var jars []string
			for _, jar := range filepath.SplitList(got.Classpath) {
				rel, _ := filepath.Rel(root, jar)
				jars = append(jars, filepath.ToSlash(rel))
			}
			if got.Version != tt.version || strings.Join(jars, " ") != strings.Join(tt.classpath, " ") {
				t.Errorf("found version %q with %q, want %q with %q", got.Version, jars, tt.version, tt.classpath)
			}
			if want := filepath.Join(java, "bin", "java"); got.Java != want {
				t.Errorf("Java = %q, want %q", got.Java, want)
			}
		})
	}
}

// tree creates a directory with empty executable files.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, nil, 0o700))
	}
	return root
}

func TestFormatPropertiesKeepsBackslashes(t *testing.T) {
	got := formatProperties(map[string]string{"tickTime": "200", "dataDir": `C:\temp\new`})
	if want := "dataDir=C:\\\\temp\\\\new\ntickTime=200\n"; got != want {
		t.Errorf("formatProperties = %q, want %q", got, want)
	}
}
