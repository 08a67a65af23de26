package ensemble

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
