package verify

import (
	"reflect"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A part that uses a recipe that the plugin lacks is skipped. No recipe is forgotten, and each needs
// a capability that a plugin can have. A recipe that only its own group of the contract uses needs
// no method of limited.
func TestEachRecipeNeedsACapability(t *testing.T) {
	srv := must.Get(zkserver.Listen(contractServer))(t)
	defer srv.Close()
	groups := map[string]string{} // by the method that opens the recipe
	for _, p := range recipestest.Parts() {
		for _, w := range grants.All() {
			if method, _, _ := strings.Cut(w.Method, "."); w.Recipe() == p.Group {
				groups[method] = p.Group
			}
		}
	}
	contract := reflect.TypeFor[recipes.Recipes]()
	for i := range contract.NumMethod() {
		method := contract.Method(i)
		none, all := &lacks{}, &lacks{capabilities: server.Config{}.Capabilities()}
		for _, l := range []*lacks{none, all} {
			s := must.Get(l.opener(zookeeper.Open)(t.Context(), recipes.SessionConfig{Servers: []string{srv.Addr()}}))(t)
			args := []reflect.Value{}
			for j := range method.Type.NumIn() {
				switch in := method.Type.In(j); {
				case method.Type.IsVariadic() && j == method.Type.NumIn()-1:
				case in.Kind() == reflect.String:
					args = append(args, reflect.ValueOf("/a"))
				case in.Kind() == reflect.Int:
					args = append(args, reflect.ValueOf(1))
				case in.Kind() == reflect.Interface:
					args = append(args, reflect.ValueOf(t.Context()))
				default:
					args = append(args, reflect.Zero(in))
				}
			}
			reflect.ValueOf(s).MethodByName(method.Name).Call(args)
			if group := groups[method.Name]; group != "" && l.String() == "" {
				l.tests(group)
			}
			must.Report(t, s.Close(t.Context()))
		}
		if none.String() == "" || all.String() != "" {
			t.Errorf("%s needs %q; of a plugin with all, it lacks %q", method.Name, none, all)
		}
	}
}
