package repository_test

import (
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/zkrecipes/zkrecipes/"
	client = "github.com/go-zookeeper/zk"
	// kerberos adds megabytes to a binary.
	kerberos = "github.com/jcmturner/gokrb5/"
)

// recipeFamilies are the recipes on ZooKeeper.
var recipeFamilies = []string{
	"recipes/zookeeper/internal/barrier", "recipes/zookeeper/internal/config", "recipes/zookeeper/internal/election",
	"recipes/zookeeper/internal/group", "recipes/zookeeper/internal/lock", "recipes/zookeeper/internal/queue",
	"recipes/zookeeper/internal/rwlock", "recipes/zookeeper/internal/twophase",
}

// rooms are the packages of the command line's verbs.
var rooms = []string{"cmd/zkrecipes/internal/run", "cmd/zkrecipes/internal/look", "cmd/zkrecipes/internal/data"}

// figures are the packages of zkbench that compute something from records, or combine them.
var figures = []string{
	"cmd/zkbench/internal/compare", "cmd/zkbench/internal/plan", "cmd/zkbench/internal/report", "cmd/zkbench/internal/slo",
	"cmd/zkbench/internal/table", "cmd/zkbench/internal/traffic", "cmd/zkbench/internal/validity", "cmd/zkbench/internal/workers",
}

// walls list the packages on which a package must not depend, directly or indirectly. A name
// that ends with "/..." means a package and all packages below it. Packages of other modules
// have their full name. Tests may import any package.
var walls = []struct {
	packages, never []string
	why             string
}{
	{
		[]string{"recipes"}, []string{"..."},
		"the contract imports no other package of the project",
	},
	{
		[]string{"recipes/..."}, []string{"host/...", "plugin/...", "internal/rpc/...", "bench/...", "internal/zkserver"},
		"an application that uses ZooKeeper without a plugin contains no code of the plugin or the benchmark",
	},
	{
		recipeFamilies, append([]string{"recipes/zookeeper"}, recipeFamilies...),
		"families of recipes share code only through session, line and znode",
	},
	{
		[]string{"recipes/zookeeper/internal/lease"}, []string{"recipes/zookeeper/...", client},
		"the proof of a grant sends nothing",
	},
	{
		[]string{"recipes/zookeeper/internal/conn"}, []string{"recipes/zookeeper/internal/session", "recipes/zookeeper/internal/line", "recipes/zookeeper/internal/znode"},
		"connections do not depend on their users",
	},
	{
		[]string{"recipes/zookeeper/internal/session", "recipes/zookeeper/internal/line", "recipes/zookeeper/internal/znode"}, append([]string{"recipes/zookeeper"}, recipeFamilies...),
		"recipes are built on sessions and lines, not the other way round",
	},
	{
		append([]string{"bench/..."}, figures...), []string{"recipes/zookeeper/...", "host/...", "plugin/...", "internal/rpc/...", "internal/zkserver", "internal/ensemble/...", client},
		"the benchmark uses only the contract: cmd/zkbench passes it an opener",
	},
	{
		figures, []string{"cmd/zkbench/internal/exit", "cmd/zkbench/internal/machine", "cmd/zkbench/internal/output", "cmd/zkbench/internal/servers", "cmd/zkbench/internal/transport"},
		"figures know no flags, files or servers",
	},
	{
		[]string{"host", "host/hostconfig", "cmd/zkrecipes/...", "examples/..."}, []string{"recipes/zookeeper/...", "bench/...", "internal/zkserver", client, kerberos + "..."},
		"a host contains no ZooKeeper client",
	},
	{
		[]string{"internal/rpc/...", "plugin/..."}, []string{"recipes/zookeeper/...", "host/...", "bench/...", "internal/zkserver", client},
		"gRPC serves the contract, not this implementation of it",
	},
	{
		[]string{"internal/zkserver", "internal/ensemble/...", "internal/feed", "internal/fourletter", "internal/jute", "internal/testing/leaktest", "internal/testing/partition", "internal/version"},
		[]string{"recipes/...", "host/...", "plugin/...", "bench/...", "internal/rpc/...", client},
		"a server does not depend on its clients, nor a tool on its users",
	},
	{
		[]string{"internal/txnlog", "internal/audit"}, []string{"recipes/...", "host/...", "plugin/...", "cmd/...", "bench/...", "internal/rpc/...", "internal/zkserver", "internal/ensemble/...", client},
		"the files of a server are read without a client, and without a server",
	},
	{
		[]string{"internal/telemetry"}, []string{"recipes/zookeeper/...", "host/...", "plugin/...", "internal/rpc/...", client},
		"the library and the host report by it",
	},
	{
		[]string{"internal/txnlog"}, []string{"internal/audit"},
		"files are decoded without knowledge of wait queues",
	},
	{
		rooms, rooms,
		"kinds of verbs share code only through verb and exit",
	},
	{
		[]string{"cmd/zkrecipes/internal/verb", "cmd/zkrecipes/internal/exit", "cmd/zkrecipes/internal/job"}, append([]string{"cmd/zkrecipes"}, rooms...),
		"verbs are built on these, not the other way round",
	},
	{
		[]string{"cmd/zkrecipes/internal/exit", "cmd/zkrecipes/internal/job", "cmd/zkrecipes/internal/status"}, []string{"cmd/zkrecipes/...", "host/..."},
		"exit codes, the running of a command and its status do not depend on verbs",
	},
	{
		[]string{"internal/..."}, []string{"bench/...", "host/..."},
		"what several parts share does not depend on one of them",
	},
	{
		[]string{"..."}, []string{"cmd/zkbench", "cmd/zkrecipes", "cmd/zkrecipes-plugin", "examples/..."},
		"no package imports a command",
	},
}

// onlyConn is the package that corrects what go-zookeeper does wrong. Tests use go-zookeeper
// as another client, whose znodes the recipes have not created.
var onlyConn = []string{"recipes/zookeeper/internal/conn", "recipes/recipestest", "internal/testing/zktest"}

func TestImportsRunOneWay(t *testing.T) {
	imports := projectImports(t)
	for _, wall := range walls {
		found := false
		for pkg := range imports {
			if !matches(pkg, wall.packages) {
				continue
			}
			found = true
			// Another package of the same wall on the path is reported separately.
			end := func(p string) bool { return matches(p, wall.never) || matches(p, wall.packages) }
			for _, chain := range chains(imports, pkg, end) {
				if matches(chain[len(chain)-1], wall.never) {
					t.Errorf("%s: %s", strings.Join(chain, " imports "), wall.why)
				}
			}
		}
		if !found {
			t.Errorf("there is no package %q", wall.packages)
		}
	}
}

func TestOnlyTheConnPackageCallsGoZookeeper(t *testing.T) {
	for pkg, imported := range projectImports(t) {
		if slices.Contains(imported, client) && !slices.Contains(onlyConn, pkg) {
			t.Errorf("%s imports %s", pkg, client)
		}
	}
}

// Authors of other implementations run recipestest, which ends tests that hang.
func TestTheProductCarriesNoTestSupport(t *testing.T) {
	for pkg, imported := range projectImports(t) {
		if matches(pkg, []string{"internal/testing/...", "recipes/recipestest"}) {
			continue
		}
		for _, other := range imported {
			if matches(other, []string{"internal/testing/..."}) {
				t.Errorf("%s imports %s", pkg, other)
			}
		}
	}
}

// projectImports returns what each package imports from the project, from go-zookeeper and from
// gokrb5, on any system. Packages of the project are named by their folder.
func projectImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	for _, file := range goFiles(t) {
		pkg := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || pkg == "." {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		imports[pkg] = append(imports[pkg], nil...) // the entry exists even for a package that imports nothing
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if folder, ok := strings.CutPrefix(name, module); ok {
				name = folder
			} else if name != client && !strings.HasPrefix(name, kerberos) {
				continue
			}
			imports[pkg] = append(imports[pkg], name)
		}
	}
	return imports
}

// chains returns a path of imports from pkg to each package that it depends on. No path leads
// beyond a package for which end returns true.
func chains(imports map[string][]string, pkg string, end func(string) bool) (found [][]string) {
	seen := map[string]bool{pkg: true}
	for open := [][]string{{pkg}}; len(open) > 0; open = open[1:] {
		chain := open[0]
		for _, next := range imports[chain[len(chain)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(chain), next)
			found = append(found, longer)
			if !end(next) {
				open = append(open, longer)
			}
		}
	}
	return found
}

// matches reports whether a pattern matches the package. "..." matches all packages of the
// project.
func matches(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		tree, ok := strings.CutSuffix(pattern, "...")
		switch {
		case !ok:
			return pkg == pattern
		case tree == "":
			return pkg != client
		}
		return pkg == strings.TrimSuffix(tree, "/") || strings.HasPrefix(pkg, tree)
	})
}
