// Command api compares the API of the public packages with the one of a commit, by
// golang.org/x/exp/apidiff. It fails if an incompatible change is not in the first section of
// CHANGELOG.md, by its package and name: `recipes.Lock.Acquire`.
//
//	go -C tools run ./api
//
// The commit is in testdata/api-base: that of the last release. Gorelease compares with a
// published version, which does not exist before the first release.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

const root = ".." // of the module; this is a command of the module tools

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "api: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile(filepath.Join(root, "testdata", "api-base"))
	if err != nil {
		return err
	}
	base := strings.TrimSpace(string(text))
	dir, err := os.MkdirTemp("", "zkrecipes-api-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := checkOut(base, dir); err != nil {
		return err
	}
	before, err := load(dir)
	if err != nil {
		return err
	}
	now, err := load(root)
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	unlisted := missing(changes(before, now), newest(string(changelog)))
	if len(unlisted) > 0 {
		return fmt.Errorf("incompatible with %.12s, and not in the first section of CHANGELOG.md:\n\t%s", base, strings.Join(unlisted, "\n\t"))
	}
	return nil
}

// checkOut writes the files of a commit to a directory.
func checkOut(commit, dir string) error {
	archive := exec.Command("git", "-C", root, "archive", commit)
	unpack := exec.Command("tar", "-x", "-C", dir)
	archive.Stderr, unpack.Stderr = os.Stderr, os.Stderr
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := errors.Join(archive.Start(), unpack.Run(), archive.Wait()); err != nil {
		return fmt.Errorf("the commit %s of testdata/api-base: %w; a shallow clone lacks it: git fetch --unshallow", commit, err)
	}
	return nil
}

// load returns the public packages of the module in a directory, by path. With -trimpath, a
// package that is the same in both directories is compiled once.
func load(dir string) (map[string]*packages.Package, error) {
	list := exec.Command("go", "list", "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: go list: %w", dir, err)
	}
	public := slices.DeleteFunc(strings.Fields(string(names)), func(path string) bool {
		return slices.Contains(strings.Split(path, "/"), "internal") || strings.Contains(path, "/plugin/proto/") // .ci/proto check compares these
	})
	found, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports, Dir: dir, BuildFlags: []string{"-trimpath"},
	}, public...)
	if err != nil {
		return nil, err
	}
	all := map[string]*packages.Package{}
	for _, p := range found {
		for _, err := range p.Errors {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		all[p.PkgPath] = p
	}
	return all, nil
}

// change is an incompatible change of a name.
type change struct{ name, what string }

func changes(before, now map[string]*packages.Package) (found []change) {
	for path, old := range before {
		current := now[path]
		if current == nil {
			found = append(found, change{old.Name, "package removed"})
			continue
		}
		for _, c := range apidiff.Changes(old.Types, current.Types).Changes {
			if !c.Compatible {
				name, what, _ := strings.Cut(c.Message, ": ")
				found = append(found, change{old.Name + "." + strings.NewReplacer("(", "", ")", "", "*", "").Replace(name), what})
			}
		}
	}
	return found
}

// newest returns the first section of the changelog: that of the coming release.
func newest(changelog string) string {
	_, rest, _ := strings.Cut(changelog, "\n## [")
	section, _, _ := strings.Cut(rest, "\n## [")
	return section
}

// missing returns the changes that the section does not name.
func missing(all []change, section string) (lines []string) {
	for _, c := range all {
		if !strings.Contains(section, "`"+c.name+"`") {
			lines = append(lines, c.name+": "+c.what)
		}
	}
	slices.Sort(lines)
	return lines
}
