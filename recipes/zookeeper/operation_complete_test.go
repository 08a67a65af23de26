package zookeeper_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Every method of a recipe that takes a context is an operation.
func TestEveryMethodIsAnOperation(t *testing.T) {
	all := operations()
	seen := map[string]bool{}
	for _, o := range all {
		if seen[o.name] {
			t.Errorf("two operations have the name %q", o.name)
		}
		seen[o.name] = true
	}
	for _, method := range methods() {
		found := false
		for name := range seen {
			rest, is := strings.CutPrefix(name, method)
			found = found || is && (rest == "" || rest[0] == ',')
		}
		if !found {
			t.Errorf("%s is no operation", method)
		}
	}
}

// methods are those of all interfaces that a session's recipes are made of. Those that
// several interfaces have are methods of one. Of the session itself it is one.
func methods() (names []string) {
	shared := []reflect.Type{reflect.TypeFor[recipes.Grant](), reflect.TypeFor[recipes.Hold](), reflect.TypeFor[recipes.Consumer]()}
	names, found := []string{"Session.Contenders"}, append(shared, reflect.TypeFor[recipes.Session]())
	for i := 0; i < len(found); i++ {
		own := found[i]
		for m := range own.Methods() {
			inherited := slices.ContainsFunc(shared[:min(i, len(shared))], func(t reflect.Type) bool {
				_, has := t.MethodByName(m.Name)
				return has && own.Implements(t)
			})
			if !inherited && own.Name() != "Session" && m.Type.NumIn() > 0 && m.Type.In(0) == reflect.TypeFor[context.Context]() {
				names = append(names, own.Name()+"."+m.Name)
			}
			for result := range m.Type.Outs() {
				if result.Kind() == reflect.Interface && result.PkgPath() == own.PkgPath() && !slices.Contains(found, result) {
					found = append(found, result)
				}
			}
		}
	}
	return names
}
