package hostconfig_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// alone sets an environment without zkrecipes' variables and files. It returns the home
// directory.
func alone(t *testing.T) (dir string) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "ZKRECIPES_") {
			t.Setenv(name, value) // restores it after the test
			os.Unsetenv(name)
		}
	}
	dir = t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	return dir
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

const checksum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

const whole = `
log_level = "debug"

zookeeper {
  servers         = ["zk1:2181", "zk2"]
  chroot          = "/apps"
  session_timeout = "20s"
  connect_timeout = "500ms"
  max_packet      = 4194304
  max_listing     = 8388608
  follow_servers  = true
  zookeeper_only  = true
  acl             = "creator"
  auth {
    user          = "backup"
    password_file = "password"
  }
  sasl {
    mechanism   = "GSSAPI"
    user        = "backup@EXAMPLE.COM"
    keytab_file = "app.keytab"
    krb5_conf   = "krb5.conf"
    service     = "zk"
  }
  tls {
    server_name = "zk.example.com"
  }
}

plugin {
  command       = "bin/zkrecipes-plugin"
  directory     = "/usr/lib/zkrecipes"
  checksum      = "` + checksum + `"
  args          = ["-x"]
  env           = ["GOGC=50", "RES_OPTIONS"]
  start_timeout = "3s"
}
`

func TestEverySettingArrives(t *testing.T) {
	dir := alone(t)
	write(t, filepath.Join(dir, "password"), "s3cret\n")
	cfg := must.Get(hostconfig.Load(write(t, filepath.Join(dir, "c.hcl"), whole)))(t)
	zk, p := cfg.ZooKeeper, cfg.Plugin
	for name, got := range map[string][2]any{
		"log_level":       {cfg.LogLevel, hclog.Debug},
		"servers":         {strings.Join(zk.Servers, " "), "zk1:2181 zk2"},
		"chroot":          {zk.Chroot, "/apps"},
		"session_timeout": {zk.SessionTimeout, 20 * time.Second},
		"max_packet":      {zk.MaxPacket, 4194304},
		"max_listing":     {zk.MaxListing, 8388608},
		"follow_servers":  {zk.FollowServers, true},
		"zookeeper_only":  {zk.ZooKeeperOnly, true},
		"connect_timeout": {zk.ConnectTimeout, 500 * time.Millisecond},
		"acl":             {zk.ACL[0], recipes.ACL{Permissions: recipes.PermAll, Scheme: "auth"}},
		"auth":            {*zk.Digest, recipes.Digest{User: "backup", Password: "s3cret"}},
		"sasl": {*zk.SASL, recipes.SASL{
			Mechanism: "GSSAPI", User: "backup@EXAMPLE.COM", Keytab: filepath.Join(dir, "app.keytab"), Krb5Conf: filepath.Join(dir, "krb5.conf"), Service: "zk",
		}},
		"tls":           {zk.TLS.ServerName, "zk.example.com"},
		"command":       {p.Path, filepath.Join(dir, "bin", "zkrecipes-plugin")},
		"directory":     {p.Dir, "/usr/lib/zkrecipes"},
		"checksum":      {p.Checksum, checksum},
		"env":           {strings.Join(p.Env, " "), "GOGC=50 RES_OPTIONS"},
		"args":          {strings.Join(p.Args, " "), "-x"},
		"start_timeout": {p.StartTimeout, 3 * time.Second},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %v; want %v", name, got[0], got[1])
		}
	}
}

func TestEnvironmentOverridesTheFile(t *testing.T) {
	dir := alone(t)
	write(t, filepath.Join(dir, "password"), "s3cret")
	path := write(t, filepath.Join(dir, "c.hcl"), whole)
	t.Setenv(hostconfig.FileEnv, path)
	other := strings.ReplaceAll(checksum, "0", "f")
	for name, value := range map[string]string{
		"LOG_LEVEL": "error", "SERVERS": "a:1, b:1", "CHROOT": "/other", "SESSION_TIMEOUT": "1m",
		"AUTH_USER": "other", "AUTH_PASSWORD_FILE": write(t, filepath.Join(dir, "other"), "0ther\r\n"),
		"PLUGIN_COMMAND": "/p", "PLUGIN_CHECKSUM": other, "MAX_PACKET": "2097152", "MAX_LISTING": "16777216",
		"ZOOKEEPER_ONLY": "false",
	} {
		t.Setenv("ZKRECIPES_"+name, value)
	}
	cfg := must.Get(hostconfig.Load(""))(t)
	got := fmt.Sprintln(cfg.LogLevel, cfg.ZooKeeper.Servers, cfg.ZooKeeper.Chroot, cfg.ZooKeeper.SessionTimeout,
		cfg.ZooKeeper.Digest.User, cfg.ZooKeeper.Digest.Password, cfg.Plugin.Path, cfg.Plugin.Checksum, cfg.ZooKeeper.MaxPacket, cfg.ZooKeeper.MaxListing, cfg.ZooKeeper.ZooKeeperOnly)
	want := fmt.Sprintln("error", "[a:1 b:1]", "/other", "1m0s", "other", "0ther", "/p", other, 2097152, 16777216, false)
	if got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if cfg.File != path || len(cfg.Variables) != 11 {
		t.Errorf("read from %s and %v", cfg.File, cfg.Variables)
	}
	if cfg.ZooKeeper.TLS == nil || cfg.Plugin.Dir == "" {
		t.Error("values that no variable overrides are missing")
	}
}

func TestWhereTheFileIs(t *testing.T) {
	dir := alone(t)
	if _, err := hostconfig.Load(""); err == nil || !strings.Contains(err.Error(), "ZKRECIPES_SERVERS=host:port") {
		t.Errorf("nothing at all: %v", err)
	}
	t.Setenv("ZKRECIPES_SERVERS", "zk:1")
	if cfg, err := hostconfig.Load(""); err != nil || cfg.File != "" || cfg.LogLevel != hclog.Warn {
		t.Errorf("no file: %+v, %v", cfg, err)
	}
	home := write(t, filepath.Join(dir, ".zkrecipes.d", "config.hcl"), `log_level = "info"`)
	if cfg, err := hostconfig.Load(""); err != nil || cfg.File != home || cfg.LogLevel != hclog.Info {
		t.Errorf("in the home: %+v, %v", cfg, err)
	}
	t.Setenv(hostconfig.FileEnv, write(t, filepath.Join(dir, "env.hcl"), `log_level = "trace"`))
	if cfg, err := hostconfig.Load(""); err != nil || cfg.LogLevel != hclog.Trace {
		t.Errorf("by variable: %+v, %v", cfg, err)
	}
	if cfg, err := hostconfig.Load(home); err != nil || cfg.LogLevel != hclog.Info {
		t.Errorf("by argument: %+v, %v", cfg, err)
	}
	if _, err := hostconfig.Load(filepath.Join(dir, "missing.hcl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestSecretByVariable(t *testing.T) {
	dir := alone(t)
	t.Setenv("MY_PASSWORD", "s3cret")
	cfg, err := hostconfig.Load(write(t, filepath.Join(dir, "c.hcl"), `zookeeper {
  servers = ["zk"]
  auth {
    user         = "u"
    password_env = "MY_PASSWORD"
  }
}`))
	if err != nil || cfg.ZooKeeper.Digest.Password != "s3cret" {
		t.Errorf("%v, %v", cfg.ZooKeeper.Digest, err)
	}
	if text := fmt.Sprintf("%+v %#v", cfg, cfg.ZooKeeper.Digest); strings.Contains(text, "s3cret") {
		t.Errorf("printing shows the password: %s", text)
	}
}

func TestSASLWithAPassword(t *testing.T) {
	dir := alone(t)
	t.Setenv("MY_PASSWORD", "s3cret")
	cfg, err := hostconfig.Load(write(t, filepath.Join(dir, "c.hcl"), `zookeeper {
  servers = ["zk"]
  acl     = "creator"
  sasl {
    mechanism    = "DIGEST-MD5"
    user         = "u"
    password_env = "MY_PASSWORD"
  }
}`))
	if err != nil || *cfg.ZooKeeper.SASL != (recipes.SASL{Mechanism: "DIGEST-MD5", User: "u", Password: "s3cret"}) {
		t.Errorf("%v, %v", cfg.ZooKeeper.SASL, err)
	}
}

func TestCredentialsFromVariablesAlone(t *testing.T) {
	dir := alone(t)
	t.Setenv("ZKRECIPES_AUTH_USER", "backup")
	t.Setenv("ZKRECIPES_AUTH_PASSWORD_FILE", write(t, filepath.Join(dir, "password"), "s3cret"))
	cfg, err := hostconfig.Load(write(t, filepath.Join(dir, "c.hcl"), "zookeeper {\n  servers = [\"zk\"]\n  acl = \"creator\"\n}"))
	if err != nil || cfg.ZooKeeper.Digest.Password != "s3cret" || len(cfg.ZooKeeper.ACL) != 1 || cfg.ZooKeeper.ACL[0].Scheme != "auth" {
		t.Errorf("%+v, %v", cfg.ZooKeeper, err)
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }
