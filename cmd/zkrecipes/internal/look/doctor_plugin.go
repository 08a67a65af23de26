package look

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/version"
)

// plugin checks the plugin executable, and reports whether it can be started. It stores the
// path of the executable in cfg.
func (v *doctorVerb) plugin(cfg *host.Config, file string) bool {
	installed := cfg.Path != "" || cfg.Dir != "" || os.Getenv(host.PluginDirEnv) != "" // at a configured place, or beside this program
	if cfg.Path == "" {
		path, err := host.Find(cfg.Dir)
		if err != nil {
			v.found("plugin", fail, adviceFor(err), "%v", err)
			return false
		}
		cfg.Path, installed = path, installed || besideThisProgram(path)
	}
	sum, err := host.Checksum(cfg.Path)
	if err != nil {
		v.found("plugin", fail, "correct plugin { command } or ZKRECIPES_PLUGIN_COMMAND", "%v", err)
		return false
	}
	v.found("plugin", fine, "", "%s", cfg.Path)
	got := hex.EncodeToString(sum[:])
	if cfg.Checksum == "" { // Launch would repeat the warning
		cfg.Logger.SetLevel(max(cfg.Logger.GetLevel(), hclog.Error))
	}
	switch {
	case cfg.Checksum == "" && installed:
		v.unpinned = pinning(got, file) // whether a checksum is needed depends on the plugin's version, which is not known yet
	case cfg.Checksum == "":
		v.found("checksum", warn, pinning(got, file), "none is configured: any file at that place is started")
	case !strings.EqualFold(cfg.Checksum, got):
		v.found("checksum", fail, `install the plugin again; or, if you have changed it yourself, set checksum = "`+got+`"`, "%s does not have the configured checksum", cfg.Path)
		return false
	default:
		v.found("checksum", fine, "", "matches")
	}
	return true
}

// pinning returns how to pin a plugin with this checksum.
func pinning(sum, file string) string {
	return fmt.Sprintf("if this is the right plugin, add this to %s:\n%s", configFile(file), pluginBlock(sum))
}

// besideThisProgram reports whether a plugin is in the directory of this executable.
func besideThisProgram(path string) bool {
	own, err := os.Executable()
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	return err == nil && filepath.Dir(own) == filepath.Dir(path)
}

func adviceFor(err error) string {
	switch {
	case errors.Is(err, host.ErrUnsafe):
		return "only you and the administrator should be able to write there"
	case errors.Is(err, host.ErrNotFound):
		return "" // the error contains the advice
	}
	return "correct plugin { directory } or " + host.PluginDirEnv
}

// needed are the capabilities that this tool requires.
var needed = []string{"election", "lock"}

func (v *doctorVerb) version(ctx context.Context, p *host.Plugin) {
	info, err := p.Info(ctx)
	if err != nil {
		v.found("version", fail, "use a plugin of the same version as zkrecipes, "+version.String(), "%v", err)
		return
	}
	status, advice := fine, ""
	if info.Version != version.String() {
		status, advice = warn, "versions with the same protocol work together, but features that the older one does not have are missing"
	}
	switch {
	case v.unpinned == "":
	case version.SameBuild(info.Version, info.Build):
		v.found("checksum", fine, "", "none is needed: the plugin is of the same build as zkrecipes")
	default:
		v.found("checksum", warn, v.unpinned, "none is configured, and the plugin is not of the same build as zkrecipes")
	}
	v.found("version", status, advice, "plugin %s, zkrecipes %s, protocol %d", info.Version, version.String(), handshake.Version)
	for _, n := range needed {
		if !slices.Contains(info.Capabilities, n) {
			v.found("version", fail, "install a newer plugin", "the plugin does not have the capability %q", n)
		}
	}
}
