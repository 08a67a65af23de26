package look

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
)

var initialize = verb.Verb{
	Name: "init", Usage: "[flags]", New: verb.New[initVerb],
	Uses:     []string{"format", "config", "servers", "chroot"},
	Synopsis: "Write a first configuration file",
	Help: `Writes a configuration file with the servers, the checksum of the plugin, and comments.
It never overwrites a file.

    zkrecipes init -servers zk1:2181,zk2:2181,zk3:2181
    zkrecipes init -servers localhost:2181 -config ./zkrecipes.hcl

The file is the one that -config or $ZKRECIPES_CONFIG names, or
~/.zkrecipes.d/config.hcl. zkrecipes prints its name on stdout. Without -servers and
$ZKRECIPES_SERVERS the server is localhost:2181. The checksum is the one of the plugin
that zkrecipes finds now. Another version of the plugin needs another checksum, which
zkrecipes doctor prints.

Exit code: 0 if the file was written. Otherwise:

    1    the file cannot be written
    2    wrong usage
    4    the file already exists; nothing was done
`,
}

type initVerb struct{}

func (v *initVerb) Flags(*flag.FlagSet) {}

func (v *initVerb) Arguments(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("init takes no arguments; it was given %q", args)
	}
	return nil
}

func (v *initVerb) Run(_ context.Context, t *verb.Tool) error {
	path := configFile(t.Config())
	if path == "" {
		return exit.Usage("there is no home directory: give -config")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exit.With(exit.Refused, "%w; edit it, or write another one with -config FILE", err)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(initial(os.Getenv("ZKRECIPES_SERVERS"), os.Getenv("ZKRECIPES_CHROOT")))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return t.Say(verb.Object{"file", path}, path)
}

func configFile(flag string) string {
	path := cmp.Or(flag, os.Getenv(hostconfig.FileEnv))
	if home, err := os.UserHomeDir(); path == "" && err == nil {
		path = filepath.Join(home, ".zkrecipes.d", "config.hcl")
	}
	return path
}

func initial(servers, chroot string) string {
	quoted := verb.List(strings.Split(cmp.Or(servers, "localhost:2181"), ","), func(server string) string {
		return fmt.Sprintf("%q", strings.TrimSpace(server))
	})
	below := `# chroot        = "/apps"   # all paths are below it`
	if chroot != "" {
		below = fmt.Sprintf(`chroot          = %q`, chroot)
	}
	return fmt.Sprintf(`# Configuration of zkrecipes. Variables such as ZKRECIPES_SERVERS, and flags such as
# -servers, override it. zkrecipes doctor checks it.

zookeeper {
  servers         = [%s]
  %s
  session_timeout = "10s"       # how long a dead holder keeps a lock
  # acl           = "creator"   # only auth's user may change what it creates

  # auth {
  #   user          = "backup"
  #   password_file = "password"   # beside this file; only you may read it
  # }
  # sasl {                         # Kerberos, or mechanism = "DIGEST-MD5" with a password_file
  #   mechanism   = "GSSAPI"
  #   ccache_file = "/tmp/krb5cc_0"
  # }
  # tls {}                         # uses the system's certificates, or ca_file
}

%s`, strings.Join(quoted, ", "), below, pluginBlock(""))
}

// pluginBlock returns the configuration block that pins the plugin with this checksum or, if
// sum is "", the plugin that would be started.
func pluginBlock(sum string) string {
	if sum == "" {
		path, err := host.Find("")
		if err == nil {
			var bytes [32]byte
			if bytes, err = host.Checksum(path); err == nil {
				sum = hex.EncodeToString(bytes[:])
			}
		}
		if err != nil {
			return "# When the plugin is installed, zkrecipes doctor prints a plugin block with its checksum.\n"
		}
	}
	return fmt.Sprintf("plugin {\n  checksum = %q\n}\n", sum)
}
