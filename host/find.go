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

// PluginName is the name of the plugin's executable, on Windows followed by
// ".exe". A version may follow the name, as in zkrecipes-plugin_v1.2.3.
const PluginName = "zkrecipes-plugin"

// PluginDirEnv is the name of an environment variable. Its value is a directory in
// which [Find] looks for the plugin.
const PluginDirEnv = "ZKRECIPES_PLUGIN_DIR"

// pluginFolder is the folder for plugins in the working directory and in the home.
var pluginFolder = filepath.Join(".zkrecipes.d", "plugins")

// ErrNotFound is returned by Find when no directory that it searched has a plugin.
var ErrNotFound = errors.New("no plugin found")

// Find returns the path of the plugin's executable. It takes the first of these
// directories that holds one:
//
//  1. dir, which is what the configuration says; "" is none
//  2. the directory in the environment variable [PluginDirEnv]
//  3. the directory of this program's executable, after links
//  4. ./.zkrecipes.d/plugins
//  5. ~/.zkrecipes.d/plugins
//  6. the directories of PATH
//
// Within a directory a plugin without a version in its name comes first: an operator
// chooses one by a link of that name. Otherwise Find takes the highest version, by
// the rules of semantic versions.
//
// Find skips nothing that looks wrong. It is an error if dir or the variable names a
// directory that does not exist. It is ErrUnsafe if others could have put the plugin
// there or changed it. A plugin below the working directory must belong to this user
// or to the administrator, because nobody has chosen that directory. The error
// matches ErrNotFound if there is no plugin, and lists the directories.
func Find(dir string) (string, error) {
	path, _, err := find(dir)
	return path, err
}

// find is Find. It also returns the folder in which the plugin is.
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
	return "", folder{}, fmt.Errorf("host: %w: no %s in any of:\n\t%s\nput it beside this program, install it with go install github.com/zkrecipes/zkrecipes/cmd/%s@latest, or set %s to its directory",
		ErrNotFound, PluginName+exe(), strings.Join(searched, "\n\t"), PluginName, PluginDirEnv)
}

// folder is a directory to search.
type folder struct {
	dir   string
	why   string // what says to search it
	named bool   // a person has chosen it: it must exist
	owned bool   // nobody has chosen it: it must belong to this user or to root

	beside bool // it has this program's executable
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
		if filepath.IsAbs(dir) { // as os/exec: "." in PATH runs other people's files
			folders = append(folders, folder{dir: dir, why: "PATH"})
		}
	}
	return folders
}

// executablePath returns the path of this program's executable, without links.
func executablePath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(self)
}

// pick returns the name of the plugin in the directory, or "".
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

// pluginVersion reports whether a file has the name of a plugin, and returns the
// version in the name.
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

// exe is how names of executables end.
func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
