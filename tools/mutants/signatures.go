package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// sameSignatures returns, for each function of the package in dir, the next one by name with
// the same signature. For a method, that is another method of the same type, and both names
// begin with a dot. A method name that several types have is left out, because a call does
// not show the type. The compiler rejects calls of another package's methods.
func sameSignatures(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	kinds := make(map[string][]string) // names, by receiver and signature
	owners := make(map[string]int)     // how many types have a function of the name
	for _, file := range files {
		if !built(file) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok || function.Type.TypeParams != nil || function.Name.Name == "init" || function.Name.Name == "main" {
				continue
			}
			name, receiver := function.Name.Name, ""
			if function.Recv != nil {
				name, receiver = "."+name, receiverOf(function)
			}
			owners[name]++
			kind := receiver + signature(function.Type)
			kinds[kind] = append(kinds[kind], name)
		}
	}
	same := make(map[string]string)
	for _, names := range kinds {
		slices.Sort(names)
		for i, name := range names {
			if other := names[(i+1)%len(names)]; other != name && owners[name] == 1 {
				same[name] = other
			}
		}
	}
	return same, nil
}

func receiverOf(function *ast.FuncDecl) string {
	return strings.TrimPrefix(types.ExprString(function.Recv.List[0].Type), "*")
}

// signature returns the types of the parameters and results of a function.
func signature(function *ast.FuncType) string {
	list := func(fields *ast.FieldList) (all []string) {
		if fields == nil {
			return nil
		}
		for _, field := range fields.List {
			for range max(1, len(field.Names)) {
				all = append(all, types.ExprString(field.Type))
			}
		}
		return all
	}
	return "(" + strings.Join(list(function.Params), ",") + ")(" + strings.Join(list(function.Results), ",") + ")"
}
