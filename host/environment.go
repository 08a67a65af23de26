package host

import (
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
)

// inheritedEnv are the variables that a plugin gets from the host's environment; Config.Env
// lists them too. They are for temporary files, certificates, the time zone and the language.
// Programs do not start on Windows without some of them. The plugin gets no others, because
// an environment often contains secrets.
var inheritedEnv = []string{
	"TMPDIR", "TMP", "TEMP",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"TZ", "LANG", "LC_ALL",
	"SYSTEMROOT", "WINDIR",
}

// environment returns the plugin's environment, to which go-plugin adds its own variables.
func environment(extra []string, level hclog.Level) []string {
	var env []string
	inherit := func(name string) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range inheritedEnv {
		inherit(name)
	}
	if level != hclog.NoLevel {
		env = append(env, handshake.LogLevelEnv+"="+level.String())
	}
	for _, e := range extra {
		if strings.Contains(e, "=") {
			env = append(env, e)
		} else {
			inherit(e)
		}
	}
	return env
}
