package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/semver"
)

// PluginName is the name of the plugin's executable, without the ".exe" of Windows. A
// version can follow, as in zkrecipes-plugin_v1.2.3.
const PluginName = "zkrecipes-plugin"

// PluginDirEnv is the environment variable with a directory that [Find] searches for the
// plugin.
const PluginDirEnv = "ZKRECIPES_PLUGIN_DIR"

// pluginFolder is the folder for plugins in the working directory and the home directory.
var pluginFolder = filepath.Join(".zkrecipes.d", "plugins")

// ErrNotFound is returned by Find when none of the directories has a plugin.
var ErrNotFound = errors.New("no plugin found")

// Find returns the path of the plugin's executable, from the first of these directories
// that has one:
//
//  1. dir, for a configured directory; "" means none
//  2. the directory in the environment variable [PluginDirEnv]
//  3. the directory of this program's executable, with links resolved
//  4. ./.zkrecipes.d/plugins
//  5. ~/.zkrecipes.d/plugins
//  6. the directories of PATH
//
// Within a directory, Find prefers a plugin without a version in its name: an operator
// selects a version with a link of that name. Otherwise it takes the highest semantic
// version.
//
// Find returns an error rather than skip a suspicious file. It fails if dir or the variable
// names a directory that does not exist. The error matches ErrUnsafe if another user could
// have put the plugin there or could change it. A plugin below the working directory must
// belong to this user or to the administrator, because that directory is not configured.
// The error matches ErrNotFound if no directory has a plugin, and lists the directories.
func Find(dir string) (string, error) {
	path, _, err := find(dir)
	return path, err
}

// find does what Find does, and also returns the plugin's folder.
func find(dir string) (path string, at folder, err error) {
	var searched []string
	for _, f := range searchOrder(dir) {
		name, err := f.pick()
		if err != nil {
			return "", folder{}, err
		}
		if name == "" {
			searched = append(searched, f.String())
			continue
		}
		path, err := filepath.Abs(filepath.Join(f.dir, name))
		if err != nil {
			return "", folder{}, fmt.Errorf("host: %w", err)
		}
		if err := f.check(path); err != nil {
			return "", folder{}, err
		}
		return path, f, nil
	}
	return "", folder{}, fmt.Errorf("host: %w: no %s in any of:\n\t%s\nput it beside this program, or set %[5]s to its directory; to install it, run go install github.com/zkrecipes/zkrecipes/cmd/%[4]s@latest",
		ErrNotFound, PluginName+exe(), strings.Join(searched, "\n\t"), PluginName, PluginDirEnv)
}

type folder struct {
	dir   string
	why   string // where the name of the directory comes from
	named bool   // dir is configured, so it must exist
	owned bool   // dir is below the working directory, so a plugin must belong to this user or to root

	beside bool // dir contains this program's executable
}

func (f folder) String() string { return f.dir + " (" + f.why + ")" }

func searchOrder(dir string) (folders []folder) {
	if dir != "" {
		folders = append(folders, folder{dir: dir, why: "the configuration", named: true})
	}
	if env := os.Getenv(PluginDirEnv); env != "" {
		folders = append(folders, folder{dir: env, why: PluginDirEnv, named: true})
	}
	if self, err := executablePath(); err == nil {
		folders = append(folders, folder{dir: filepath.Dir(self), why: "beside this program", beside: true})
	}
	folders = append(folders, folder{dir: pluginFolder, why: "the working directory", owned: true})
	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, folder{dir: filepath.Join(home, pluginFolder), why: "the home directory"})
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) { // like os/exec: with "." in PATH, other users choose what runs
			folders = append(folders, folder{dir: dir, why: "PATH"})
		}
	}
	return folders
}

// executablePath returns the path of this program's executable, with links resolved.
func executablePath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(self)
}

// pick returns the name of the plugin in the directory. "" means that it has no plugin.
func (f folder) pick() (string, error) {
	entries, err := os.ReadDir(f.dir)
	switch {
	case err != nil && f.named:
		return "", fmt.Errorf("host: directory of plugins, from %s: %w", f.why, err)
	case err != nil:
		return "", nil
	}
	best, bestVersion := "", ""
	for _, e := range entries {
		version, ok := pluginVersion(e.Name())
		if !ok || !executable(filepath.Join(f.dir, e.Name())) {
			continue
		}
		if version == "" {
			return e.Name(), nil
		}
		if best == "" || semver.Compare(version, bestVersion) > 0 {
			best, bestVersion = e.Name(), version
		}
	}
	return best, nil
}

func (f folder) check(path string) error {
	if f.owned {
		if err := checkOwner(path); err != nil {
			return err
		}
	}
	return checkPermissions(path)
}

// pluginVersion reports whether name is that of a plugin, and returns the version in it.
func pluginVersion(name string) (version string, ok bool) {
	name, ok = strings.CutSuffix(name, exe())
	if !ok {
		return "", false
	}
	if name == PluginName {
		return "", true
	}
	version, ok = strings.CutPrefix(name, PluginName+"_")
	return version, ok && semver.IsValid(version)
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
