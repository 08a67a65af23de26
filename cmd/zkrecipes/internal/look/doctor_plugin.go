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

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/version"
)

// plugin checks what would be started, and reports whether it can be. The path
// that was found is in the configuration afterwards.
func (v *doctorVerb) plugin(cfg *host.Config, file string) bool {
	installed := cfg.Path != "" || cfg.Dir != "" || os.Getenv(host.PluginDirEnv) != "" // where a person said, or beside this program
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
	switch {
	case cfg.Checksum == "" && installed:
		v.unpinned = pinning(got, file) // whether a checksum is needed depends on the version
		cfg.Logger.SetLevel(quieter(cfg.Logger.GetLevel()))
	case cfg.Checksum == "":
		v.found("checksum", warn, pinning(got, file), "none is configured: whatever is there is started")
		cfg.Logger.SetLevel(quieter(cfg.Logger.GetLevel())) // Launch would say it again
	case !strings.EqualFold(cfg.Checksum, got):
		v.found("checksum", fail, `install the plugin again; or, if you have changed it yourself, set checksum = "`+got+`"`, "%s does not have the checksum that is configured", cfg.Path)
		return false
	default:
		v.found("checksum", fine, "", "matches")
	}
	return true
}

// pinning says how to pin a plugin with this checksum.
func pinning(sum, file string) string {
	return fmt.Sprintf("if this is the plugin that you want, put this into %s:\n%s", configFile(file), pluginBlock(sum))
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
		return "" // the error says it
	}
	return "correct plugin { directory } or " + host.PluginDirEnv
}

// needed is what this tool uses.
var needed = []string{"election", "lock"}

func (v *doctorVerb) version(ctx context.Context, p *host.Plugin) {
	info, err := p.Info(ctx)
	if err != nil {
		v.found("version", fail, "use a plugin of the version of zkrecipes, "+version.String(), "%v", err)
		return
	}
	status, advice := fine, ""
	if info.Version != version.String() {
		status, advice = warn, "versions of one protocol understand each other, but what the older one does not know is missing"
	}
	switch {
	case v.unpinned == "":
	case version.SameBuild(info.Version, info.Build):
		v.found("checksum", fine, "", "none is needed: the plugin is of the same build as zkrecipes")
	default:
		v.found("checksum", warn, v.unpinned, "none is configured, and the plugin is of another build than zkrecipes")
	}
	v.found("version", status, advice, "plugin %s, zkrecipes %s, protocol %d", info.Version, version.String(), handshake.Version)
	for _, n := range needed {
		if !slices.Contains(info.Capabilities, n) {
			v.found("version", fail, "install a newer plugin", "the plugin does not know %q", n)
		}
	}
}
