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
// ".exe". A version may follow the name: zkrecipes-plugin_v1.2.3.
const PluginName = "zkrecipes-plugin"

// PluginDirEnv names the environment variable with a directory in which [Find]
// looks for the plugin.
const PluginDirEnv = "ZKRECIPES_PLUGIN_DIR"

// pluginFolder is where plugins lie below the working directory and the home.
var pluginFolder = filepath.Join(".zkrecipes.d", "plugins")

// ErrNotFound: there is no plugin in any of the directories that were searched.
var ErrNotFound = errors.New("no plugin found")

// Find returns the path of the plugin's executable. It takes the first of these
// directories that holds one:
//
//  1. dir, which is what the configuration says; "" is none
//  2. the directory in the environment variable [PluginDirEnv]
//  3. ./.zkrecipes.d/plugins
//  4. ~/.zkrecipes.d/plugins
//  5. the directories of PATH
//
// Within a directory a plugin without a version in its name comes first: a link
// of that name is how an operator chooses. Otherwise the highest version is
// taken, by the rules of semantic versions.
//
// Find does not step over what it does not like: a directory that dir or the
// variable names and that is not there is an error, and so is a plugin that
// others could have put there or changed (ErrUnsafe). What lies below the
// working directory, which nobody has chosen, must belong to this user or to
// the administrator. If nothing is found the error matches ErrNotFound and
// tells where it was looked for.
func Find(dir string) (string, error) {
	places, err := searchOrder(dir)
	if err != nil {
		return "", err
	}
	var searched []string
	for _, p := range places {
		name, err := p.pick()
		if err != nil {
			return "", err
		}
		if name == "" {
			searched = append(searched, p.String())
			continue
		}
		path, err := filepath.Abs(filepath.Join(p.dir, name))
		if err != nil {
			return "", fmt.Errorf("host: %w", err)
		}
		if err := p.check(path); err != nil {
			return "", err
		}
		return path, nil
	}
	return "", fmt.Errorf("host: %w: no %s in any of:\n\t%s\ninstall it with go install github.com/zkrecipes/zkrecipes/cmd/%s@latest, or set %s to its directory",
		ErrNotFound, PluginName+exe(), strings.Join(searched, "\n\t"), PluginName, PluginDirEnv)
}

// place is a directory to search.
type place struct {
	dir   string
	why   string // who says so
	named bool   // somebody has chosen it, so that it must be there
	owned bool   // nobody has chosen it, so that it must not be a stranger's
}

func (p place) String() string { return p.dir + " (" + p.why + ")" }

func searchOrder(dir string) ([]place, error) {
	var places []place
	if dir != "" {
		places = append(places, place{dir: dir, why: "the configuration", named: true})
	}
	if env := os.Getenv(PluginDirEnv); env != "" {
		places = append(places, place{dir: env, why: PluginDirEnv, named: true})
	}
	places = append(places, place{dir: pluginFolder, why: "the working directory", owned: true})
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, place{dir: filepath.Join(home, pluginFolder), why: "the home directory"})
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) { // as os/exec: "." in PATH runs other people's files
			places = append(places, place{dir: dir, why: "PATH"})
		}
	}
	return places, nil
}

// pick returns the name of the plugin in the directory, or "".
func (p place) pick() (string, error) {
	entries, err := os.ReadDir(p.dir)
	switch {
	case err != nil && p.named:
		return "", fmt.Errorf("host: directory of plugins, from %s: %w", p.why, err)
	case err != nil:
		return "", nil
	}
	best, bestVersion := "", ""
	for _, e := range entries {
		version, ok := pluginVersion(e.Name())
		if !ok || !executable(filepath.Join(p.dir, e.Name())) {
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

func (p place) check(path string) error {
	if p.owned {
		if err := checkOwner(path); err != nil {
			return err
		}
	}
	return checkPermissions(path)
}

// pluginVersion reports whether a file has the name of a plugin, and which
// version the name says.
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
