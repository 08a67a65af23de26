package ensemble

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNotFound is returned if this machine has no ZooKeeper, or no Java to run it. The
// error that wraps it says where Find has searched.
var ErrNotFound = errors.New("no ZooKeeper found; install one with `apt-get install zookeeper` (Debian, Ubuntu), " +
	"or unpack a release of Apache ZooKeeper and set ZOOKEEPER_HOME to it, with Java on the PATH or in JAVA_HOME")

// Installation is a ZooKeeper that can be started, and the Java to start it.
type Installation struct {
	Java      string // path of the java executable
	Classpath string // jars, in the platform's list syntax
	Version   string // of ZooKeeper, such as "3.8.0"; "" if unknown
	Source    string // the place where it was found, for messages
}

func (i Installation) isZero() bool { return i == Installation{} }

// String returns the version and the source, for messages.
func (i Installation) String() string {
	version := i.Version
	if version == "" {
		version = "of unknown version"
	}
	return fmt.Sprintf("ZooKeeper %s from %s", version, i.Source)
}

// Find finds a real ZooKeeper: in ZOOKEEPER_HOME (the layout of an Apache release) if that
// is set, and otherwise in the place of Debian's packages. Java is JAVA_HOME's if that is
// set, and otherwise the one on the PATH. Find only reads files, and starts nothing.
//
// If ZOOKEEPER_HOME or JAVA_HOME is set but does not have the expected files, Find fails. A
// different ZooKeeper than the requested one would give wrong measurements.
func Find() (Installation, error) {
	return finder{getenv: os.Getenv, debianJars: "/usr/share/java"}.find()
}

// finder is Find, with its environment as parameters.
type finder struct {
	getenv     func(string) string
	debianJars string
}

func (f finder) find() (Installation, error) {
	found, err := f.zookeeper()
	if err != nil {
		return Installation{}, fmt.Errorf("ensemble: %w: %w", err, ErrNotFound)
	}
	found.Java, err = f.java()
	if err != nil {
		return Installation{}, fmt.Errorf("ensemble: %s has no Java to run on: %w: %w", found, err, ErrNotFound)
	}
	return found, nil
}

func (f finder) zookeeper() (Installation, error) {
	if home := f.getenv("ZOOKEEPER_HOME"); home != "" {
		return apacheRelease(home)
	}
	return debianPackage(f.debianJars)
}

// apacheRelease finds the jars of an unpacked release. Since 3.5.5 all of them are in lib. In
// earlier releases, ZooKeeper's own jar was beside lib.
func apacheRelease(home string) (Installation, error) {
	home, err := filepath.Abs(home) // each server has its own working directory
	if err != nil {
		return Installation{}, err
	}
	jars := append(glob(home, "lib/*.jar"), glob(home, "zookeeper-*.jar")...)
	version, ok := versionIn(jars)
	if !ok {
		return Installation{}, fmt.Errorf("ZOOKEEPER_HOME=%s has no lib/zookeeper-<version>.jar", home)
	}
	return Installation{
		Classpath: strings.Join(jars, string(filepath.ListSeparator)),
		Version:   version,
		Source:    "ZOOKEEPER_HOME=" + home,
	}, nil
}

// debianExtraJars are jars that Debian's zookeeper.jar needs and its manifest does not
// name. Without Netty's codecs, a server with TLS accepts connections and never answers
// (ClassNotFoundException in NettyServerCnxnFactory). Without an SLF4J binding it logs
// nothing. The jars are in libnetty-java and libslf4j-java, on which libzookeeper-java
// depends.
var debianExtraJars = []string{"netty-codec.jar", "slf4j-simple.jar"}

func debianPackage(dir string) (Installation, error) {
	main := filepath.Join(dir, "zookeeper.jar")
	if !isFile(main) {
		return Installation{}, fmt.Errorf("ZOOKEEPER_HOME is not set and there is no %s", main)
	}
	jars := []string{main}
	for _, name := range debianExtraJars {
		if jar := filepath.Join(dir, name); isFile(jar) {
			jars = append(jars, jar)
		}
	}
	version, _ := versionIn(glob(dir, "zookeeper-*.jar"))
	return Installation{
		Classpath: strings.Join(jars, string(filepath.ListSeparator)),
		Version:   version,
		Source:    "Debian's package in " + dir,
	}, nil
}

func (f finder) java() (string, error) {
	home := f.getenv("JAVA_HOME")
	if home == "" {
		return exec.LookPath("java")
	}
	java, err := exec.LookPath(filepath.Join(home, "bin", "java"))
	if err != nil {
		return "", fmt.Errorf("JAVA_HOME=%s: %w", home, err)
	}
	return filepath.Abs(java)
}

// versionIn reads the version from the name of ZooKeeper's own jar, which is cheaper
// than to start a JVM. In other names, such as zookeeper-jute-3.8.0.jar, the version does
// not follow "zookeeper-" directly.
func versionIn(jars []string) (version string, ok bool) {
	for _, jar := range jars {
		rest, ok := strings.CutPrefix(filepath.Base(jar), "zookeeper-")
		if ok && rest[0] >= '0' && rest[0] <= '9' {
			return strings.TrimSuffix(rest, ".jar"), true
		}
	}
	return "", false
}

func glob(dir, pattern string) []string {
	matches, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern))) // no error: the patterns are constants and well-formed
	return matches
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
