package hostconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestMistakesInTheFile: the error has the file, the line and what was expected there. The
// file is c.hcl, and the error contains each want.
func TestMistakesInTheFile(t *testing.T) {
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"syntax", "zookeeper {\n  servers = [\"zk\"\n}", []string{"c.hcl:", "Missing item separator"}},
		{"unknown argument", "zookeeper {\n  server = \"zk\"\n}", []string{"c.hcl:2", `"server" is not expected here`, `Did you mean "servers"?`}},
		{"unknown block", "zookeper {\n}", []string{"c.hcl:1", `"zookeper" are not expected here`}},
		{"two blocks", "plugin {}\nplugin {}", []string{"c.hcl:2", "Duplicate plugin block"}},
		{"wrong type", "zookeeper {\n\n  servers = \"zk\"\n}", []string{"c.hcl:3", `Expected a list of "host:port"`}},
		{"bad address", "zookeeper {\n  servers = [\"zk:port\"]\n}", []string{"c.hcl:2", `"port" is not a port number`}},
		{"two chroots", "zookeeper {\n  servers = [\"zk:2181/apps\"]\n  chroot = \"/app\"\n}", []string{"c.hcl:3", "/app disagrees with the chroot of servers, /apps"}},
		{"a chroot at the first server", "zookeeper {\n  servers = [\"zk:2181/apps\", \"zk2:2181\"]\n}", []string{"c.hcl:2", "the chroot follows the last server"}},
		{"no address", "zookeeper {\n  servers = []\n}", []string{"c.hcl:2", "give at least one host:port"}},
		{"bad chroot", "zookeeper {\n  chroot = \"apps\"\n}", []string{"c.hcl:2", "Chroot"}},
		{"bad duration", "zookeeper {\n  session_timeout = \"ten\"\n}", []string{"c.hcl:2", `such as "10s"`, `"ten"`}},
		{"tiny packet", "zookeeper {\n  max_packet = 1\n}", []string{"c.hcl:2", "MaxPacket is 1 bytes"}},
		{"tiny listing", "zookeeper {\n  max_listing = 1\n}", []string{"c.hcl:2", "MaxListing is 1 bytes"}},
		{"packet in words", "zookeeper {\n  max_packet = \"1MB\"\n}", []string{"c.hcl:2", "a number of bytes"}},
		{"no unit", "zookeeper {\n  session_timeout = 10\n}", []string{"c.hcl:2", `such as "10s"`}},
		{"negative", "plugin {\n  start_timeout = \"-1s\"\n}", []string{"c.hcl:2", "at least"}},
		{"level", "log_level = \"loud\"", []string{"c.hcl:1", "trace, debug, info, warn, error or off", "loud"}},
		{"acl", "zookeeper {\n  acl = \"mine\"\n}", []string{"c.hcl:2", `"creator" or "world"`}},
		{"acl without auth", "zookeeper {\n  acl = \"creator\"\n}", []string{"c.hcl:2", "needs an auth block"}},
		{"checksum", "plugin {\n  checksum = \"abcd\"\n}", []string{"c.hcl:2", "64 hexadecimal digits"}},
		{"env", "plugin {\n  env = [\"=1\"]\n}", []string{"c.hcl:2", `"NAME=value"`}},
		{"variable", "log_level = level", []string{"c.hcl:1", "Variables not allowed"}},
		{"no user", "zookeeper {\n  auth {\n    password_env = \"P\"\n  }\n}", []string{"c.hcl:2", "Expected user"}},
		{"colon", "zookeeper {\n  auth {\n    user = \"a:b\"\n    password_env = \"HOME\"\n  }\n}", []string{"c.hcl:3", "without a colon"}},
		{"no password", "zookeeper {\n  auth {\n    user = \"u\"\n  }\n}", []string{"c.hcl:2", "Expected password_file or password_env"}},
		{"password", "zookeeper {\n  auth {\n    user = \"u\"\n    password = \"s3cret\"\n  }\n}", []string{"c.hcl:4", "does not belong in this file"}},
		{"both", "zookeeper {\n  auth {\n    user = \"u\"\n    password_file = \"x\"\n    password_env = \"y\"\n  }\n}", []string{"c.hcl:5", "not both"}},
		{"missing file", "zookeeper {\n  auth {\n    user = \"u\"\n    password_file = \"missing\"\n  }\n}", []string{"c.hcl:4", "missing", "no such file"}},
		{"missing variable", "zookeeper {\n  auth {\n    user = \"u\"\n    password_env = \"MISSING_ONE\"\n  }\n}", []string{"c.hcl:4", "MISSING_ONE, which is not set"}},
		{"mechanism", "zookeeper {\n  sasl {\n    mechanism = \"PLAIN\"\n  }\n}", []string{"c.hcl:2", `"PLAIN"; ZooKeeper has "GSSAPI" and "DIGEST-MD5"`}},
		{"keytab and cache", "zookeeper {\n  sasl {\n    mechanism = \"GSSAPI\"\n    keytab_file = \"k\"\n    ccache_file = \"c\"\n  }\n}", []string{"c.hcl:2", "either Keytab or CCache"}},
		{"sasl password", "zookeeper {\n  sasl {\n    mechanism = \"DIGEST-MD5\"\n    password = \"s3cret\"\n  }\n}", []string{"c.hcl:4", "does not belong in this file"}},
		{"certificate", "zookeeper {\n  tls {\n    ca_file = \"c.hcl\"\n  }\n}", []string{"c.hcl:2", "no PEM certificate"}},
		{"empty file", "zookeeper {\n  tls {\n    ca_file = \"empty\"\n  }\n}", []string{"c.hcl:3", "Invalid ca_file", "which is empty"}},
		{"empty variable", "zookeeper {\n  auth {\n    user = \"u\"\n    password_env = \"EMPTY_ONE\"\n  }\n}", []string{"c.hcl:4", "Invalid password_env", "which is empty"}},
		{"two mistakes", "log_level = \"loud\"\nplugin {\n  checksum = \"abcd\"\n}", []string{"c.hcl:1", "c.hcl:3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := alone(t)
			t.Setenv("ZKRECIPES_SERVERS", "zk:1")
			t.Setenv("EMPTY_ONE", "")
			write(t, filepath.Join(dir, "empty"), "")
			err := invalid(t, write(t, filepath.Join(dir, "c.hcl"), test.file), test.want...)
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("a secret is in the error:\n%v", err)
			}
		})
	}
}

// invalid loads a configuration. It checks that there is an error, which contains each want.
func invalid(t *testing.T, path string, wants ...string) error {
	t.Helper()
	_, err := hostconfig.Load(path)
	if !strings.HasPrefix(fmt.Sprint(err), "invalid configuration:") {
		t.Fatalf("%v; want an invalid configuration", err)
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	return err
}

// TestMistakesInVariables: the error contains want. A user without a password, or a password
// without a user, is a mistake too: ZooKeeper accepts any password at first, and refuses the
// znodes of others later. An empty password file may not be mounted yet.
func TestMistakesInVariables(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"LOG_LEVEL", "loud", "ZKRECIPES_LOG_LEVEL"},
		{"SERVERS", "zk:port", "ZKRECIPES_SERVERS"},
		{"CHROOT", "apps", "ZKRECIPES_CHROOT"},
		{"SESSION_TIMEOUT", "10", "ZKRECIPES_SESSION_TIMEOUT"},
		{"MAX_PACKET", "1MB", "ZKRECIPES_MAX_PACKET"},
		{"MAX_LISTING", "1MB", "ZKRECIPES_MAX_LISTING"},
		{"MAX_LISTING", "1", "MaxListing is 1 bytes"},
		{"ZOOKEEPER_ONLY", "perhaps", "expected true or false"},
		{"PLUGIN_CHECKSUM", "abcd", "ZKRECIPES_PLUGIN_CHECKSUM"},
		{"AUTH_USER", "a:b", ""},
		{"AUTH_USER", "backup", `user "backup" has no password: set ZKRECIPES_AUTH_PASSWORD_FILE`},
		{"AUTH_PASSWORD_FILE", "missing", "ZKRECIPES_AUTH_PASSWORD_FILE"},
		{"AUTH_PASSWORD_FILE", "password", "no user: set ZKRECIPES_AUTH_USER"},
		{"AUTH_PASSWORD_FILE", "empty", "ZKRECIPES_AUTH_PASSWORD_FILE: expected something"},
	} {
		t.Run(test.name+" "+test.value, func(t *testing.T) {
			dir := alone(t)
			t.Chdir(dir) // file names in variables are relative to it
			write(t, filepath.Join(dir, "password"), "s3cret")
			write(t, filepath.Join(dir, "empty"), "\n")
			t.Setenv("ZKRECIPES_SERVERS", "zk:1")
			t.Setenv("ZKRECIPES_"+test.name, test.value)
			invalid(t, "", test.want)
		})
	}
}

// TestFileThatIsNoText: Load reports one mistake, not one for each byte.
func TestFileThatIsNoText(t *testing.T) {
	dir := alone(t)
	for name, content := range map[string]string{
		"binary":     "\x7fELF\x02\x01\x01\x00" + strings.Repeat("\x00\xff\xfe\x01", 100),
		"other text": strings.Repeat("#!/bin/sh\necho $(date) | tee ~/x; ]]\n", 40),
	} {
		_, err := hostconfig.Load(write(t, filepath.Join(dir, "c.hcl"), content))
		if lines := strings.Count(fmt.Sprint(err), "\n"); err == nil || lines > 12 {
			t.Errorf("%s: %d lines: %v", name, lines, err)
		}
	}
}

// TestPasswordThatEverybodyMayReadIsAMistake: the file is named in the auth block, or by the
// variable. The group may read it, because a service's group owns such files.
func TestPasswordThatEverybodyMayReadIsAMistake(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file's mode does not say who may read it")
	}
	for mode, wrong := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		for _, variable := range []bool{false, true} {
			dir := alone(t)
			t.Setenv("ZKRECIPES_SERVERS", "zk:1")
			password := write(t, filepath.Join(dir, "password"), "s3cret")
			must.Do(t, os.Chmod(password, mode))
			file := "zookeeper {\n  auth {\n    user = \"u\"\n    password_file = \"password\"\n  }\n}"
			if variable {
				file = ""
				t.Setenv("ZKRECIPES_AUTH_USER", "u")
				t.Setenv("ZKRECIPES_AUTH_PASSWORD_FILE", password)
			}
			_, err := hostconfig.Load(write(t, filepath.Join(dir, "c.hcl"), file))
			if (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "chmod o-r") {
				t.Errorf("%v, by a variable %t: %v", mode, variable, err)
			}
			os.Unsetenv("ZKRECIPES_AUTH_USER")
			os.Unsetenv("ZKRECIPES_AUTH_PASSWORD_FILE")
		}
	}
}

// TestKerberosFilesAreAsPrivateAsPasswords: the plugin reads them, and they may be missing here.
func TestKerberosFilesAreAsPrivateAsPasswords(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file's mode does not say who may read it")
	}
	dir := alone(t)
	for file, wrong := range map[string]bool{"private": false, "missing": false, "open": true} {
		for _, form := range []string{"user = \"u\"\n    keytab_file = %q", "ccache_file = %q", "ccache_file = \"missing\"\n    krb5_conf = %q"} {
			must.Do(t, os.Chmod(write(t, filepath.Join(dir, "private"), "s3cret"), 0o640))
			must.Do(t, os.Chmod(write(t, filepath.Join(dir, "open"), "s3cret"), 0o644))
			text := "zookeeper {\n  servers = [\"zk\"]\n  sasl {\n    mechanism = \"GSSAPI\"\n    " + fmt.Sprintf(form, file) + "\n  }\n}"
			_, err := hostconfig.Load(write(t, filepath.Join(dir, "c.hcl"), text))
			refused := err != nil && strings.Contains(err.Error(), "chmod o-r")
			if secret := !strings.Contains(form, "krb5_conf"); refused != (wrong && secret) || err != nil && !refused {
				t.Errorf("%s, %s: %v", file, form, err)
			}
		}
	}
}
