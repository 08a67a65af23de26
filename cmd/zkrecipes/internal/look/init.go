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
	Synopsis: "Write a configuration file to begin with",
	Help: `Writes a configuration file with the servers, the checksum of the plugin, and comments.
It never overwrites a file.

    zkrecipes init -servers zk1:2181,zk2:2181,zk3:2181
    zkrecipes init -servers localhost:2181 -config ./zkrecipes.hcl

The file is the one of -config or $ZKRECIPES_CONFIG, or ~/.zkrecipes.d/config.hcl; its
name is shown on stdout. Without -servers and $ZKRECIPES_SERVERS the server is
localhost:2181. The checksum is that of the plugin that zkrecipes finds now: a new
version of the plugin needs a new one, which zkrecipes doctor shows.

Exit code: 0 if it was written. Otherwise:

    1    the file cannot be written
    2    wrong usage
    4    the file exists already; nothing was done
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
		return exit.Usage("there is no home directory to write to: give -config")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exit.With(exit.Refused, "%w", err)
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

// configFile is the file that is read: of the flag, of the variable, or the one in the
// home directory.
func configFile(flag string) string {
	path := cmp.Or(flag, os.Getenv(hostconfig.FileEnv))
	if home, err := os.UserHomeDir(); path == "" && err == nil {
		path = filepath.Join(home, ".zkrecipes.d", "config.hcl")
	}
	return path
}

// initial is a configuration to begin with.
func initial(servers, chroot string) string {
	quoted := verb.List(strings.Split(cmp.Or(servers, "localhost:2181"), ","), func(server string) string {
		return fmt.Sprintf("%q", strings.TrimSpace(server))
	})
	below := `# chroot        = "/apps"   # all paths are below it`
	if chroot != "" {
		below = fmt.Sprintf(`chroot          = %q`, chroot)
	}
	return fmt.Sprintf(`# Configuration of zkrecipes. Variables such as ZKRECIPES_SERVERS, and flags such as
# -servers, go before it. zkrecipes doctor checks it.

zookeeper {
  servers         = [%s]
  %s
  session_timeout = "10s"       # how long a dead holder keeps a lock
  # acl           = "creator"   # only auth's user may change what it creates

  # auth {
  #   user          = "backup"
  #   password_file = "password"   # beside this file, readable for you alone
  # }
  # tls {}                         # the system's certificates; ca_file for others
}

%s`, strings.Join(quoted, ", "), below, pluginBlock(""))
}

// pluginBlock is the block of a configuration that pins a plugin: the one with this
// checksum, or, if sum is "", the one that would be started.
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
			return "# zkrecipes doctor shows a plugin block with the checksum when the plugin is installed.\n"
		}
	}
	return fmt.Sprintf("plugin {\n  checksum = %q\n}\n", sum)
}
