package zkrecipes_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxExported is the limit of names that a user may have to know. docs/architecture.md
// states it.
const maxExported = 248

// TestThePublicSurfaceIsSmall counts the exported names that others can depend on: the
// top-level names of all packages except commands and internal packages. It does not count
// methods, fields and generated code. With -v it prints the list.
func TestThePublicSurfaceIsSmall(t *testing.T) {
	surface := map[string][]string{}
	count := 0
	for _, file := range goFiles(t) {
		folder := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || !public(folder) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Name.Name == "main" || ast.IsGenerated(parsed) {
			continue
		}
		names := exported(parsed)
		surface[folder] = append(surface[folder], names...)
		count += len(names)
	}
	for _, folder := range slices.Sorted(maps.Keys(surface)) {
		slices.Sort(surface[folder])
		t.Logf("%3d %s: %s", len(surface[folder]), folder, strings.Join(surface[folder], " "))
	}
	t.Logf("%3d exported names, of at most %d", count, maxExported)
	if count > maxExported {
		t.Errorf("%d exported names; at most %d: move to internal what no user needs", count, maxExported)
	}
	page, err := os.ReadFile(filepath.Join("docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("depend on %d exported top-level names", count); !strings.Contains(string(page), want) {
		t.Errorf("docs/architecture.md does not say that others can %s", want)
	}
	if len(surface["recipes"]) == 0 { // then the test does not find the names
		t.Error("package recipes exports nothing")
	}
}

// unused are exported names that no package of this module needs, with the reason to have them.
var unused = map[string]string{
	"recipes.PermCreate": "one of ZooKeeper's five permissions",
}

// A name is exported only if a package that imports its package uses it (another one, a command
// or an external test), or if the signature of another exported name contains it. So the number
// of names is bounded by what users and their tests do.
func TestEveryExportedNameIsUsed(t *testing.T) {
	const module = "github.com/zkrecipes/zkrecipes/"
	declared, used := map[string]bool{}, map[string]bool{}
	for _, file := range goFiles(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		folder := path.Dir(file)
		if public(folder) && !strings.HasSuffix(file, "_test.go") && parsed.Name.Name != "main" && !ast.IsGenerated(parsed) {
			for _, name := range exported(parsed) {
				declared[folder+"."+name] = true
			}
			for _, name := range inSignatures(parsed) {
				used[folder+"."+name] = true
			}
		}
		imports := map[string]string{}
		for _, i := range parsed.Imports {
			if p, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ok && i.Name == nil {
				imports[path.Base(p)] = p
			} else if ok {
				imports[i.Name.Name] = p
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if p, ok := s.X.(*ast.Ident); ok {
					used[imports[p.Name]+"."+s.Sel.Name] = true
				}
			}
			return true
		})
	}
	for name := range declared {
		if _, excepted := unused[name]; excepted == used[name] {
			t.Errorf("%s: used elsewhere: %t, in the list of unused names: %t", name, used[name], excepted)
		}
	}
	for name := range unused {
		if !declared[name] {
			t.Errorf("%s does not exist", name)
		}
	}
}

// inSignatures returns the names in the types of what a file exports.
func inSignatures(file *ast.File) (names []string) {
	collect := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names = append(names, id.Name)
			}
			return true
		})
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() {
				collect(decl.Type)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					collect(spec.Type)
				}
			}
		}
	}
	return names
}

// public reports whether other modules can import a package.
func public(folder string) bool {
	return !slices.Contains(strings.Split(folder, "/"), "internal")
}

// exported returns the exported top-level names of a file.
func exported(file *ast.File) (names []string) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				names = append(names, id.Name)
			}
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				add(decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name)
				case *ast.ValueSpec:
					add(spec.Names...)
				}
			}
		}
	}
	return names
}

// goFiles returns the Go files of this module, by paths with slashes.
func goFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (name[0] == '.' || name[0] == '_' || name == "testdata" || name == "tools"):
			return fs.SkipDir
		case filepath.Ext(name) == ".go":
			files = append(files, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
