package grants_test

import (
	"errors"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The catalog has each method of each recipe that returns a grant, and each method that gives such
// a grant back exists.
func TestEveryGrantIsInTheCatalog(t *testing.T) {
	contract, gives := map[string]bool{}, map[string]bool{}
	grant := reflect.TypeFor[recipes.Grant]()
	for opens := range reflect.TypeFor[recipes.Recipes]().Methods() {
		recipe := opens.Type.Out(0)
		if recipe.Kind() != reflect.Interface {
			continue
		}
		for m := range recipe.Methods() {
			if m.Type.NumOut() == 2 && m.Type.Out(0).Implements(grant) {
				contract[opens.Name+"."+m.Name] = true
				for of := range m.Type.Out(0).Methods() {
					gives[m.Type.Out(0).Name()+"."+of.Name] = true
				}
			}
		}
	}
	catalog := map[string]bool{}
	for _, w := range grants.All() {
		catalog[w.Method] = true
		if w.Tries != "" {
			catalog[w.Tries] = true
		}
		if !gives[w.Gives] {
			t.Errorf("%s: no grant has %s", w.Name, w.Gives)
		}
	}
	if want, got := slices.Sorted(maps.Keys(contract)), slices.Sorted(maps.Keys(catalog)); !slices.Equal(got, want) {
		t.Errorf("the catalog has\n%q, the contract\n%q", got, want)
	}
}

// Each way grants with its marker, lists its contender and gives the grant back. It has
// exactly the dialects in the catalog.
func TestEachWayIsAsTheCatalogSays(t *testing.T) {
	ctx := zktest.Bounded(t)
	s := must.Get(zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{zktest.Embedded(t).Addr()}}))(t)
	for _, w := range grants.All() {
		at := "/" + regexp.MustCompile(" ").ReplaceAllString(w.Name, "-")
		switch w.Name { // an element to receive
		case "delivery":
			must.Get(must.Get(s.Queue(at, recipes.QueueConfig{}))(t).Put(ctx, nil))(t)
		case "delivery by priority":
			must.Get(must.Get(s.PriorityQueue(at, recipes.QueueConfig{}))(t).Put(ctx, 1, nil))(t)
		}
		e := must.Get(w.Open(s, at, grants.Options{Name: map[string]string{"name": "me"}[w.Name]}))(t)
		g := must.Get(e.Get(ctx))(t)
		if w.Marker != "" && !regexp.MustCompile(`^(_c_.{36}-)?`+w.Marker+`[0-9]{10}$`).MatchString(path.Base(g.Znode())) {
			t.Errorf("%s: the znode is %s; want the marker %s", w.Name, g.Znode(), w.Marker)
		}
		if (e.Contenders != nil) != (w.Kind != "") {
			t.Errorf("%s lists contenders: %v", w.Name, e.Contenders != nil)
		} else if w.Kind != "" {
			if all := must.Get(e.Contenders(ctx))(t); len(all) != 1 || all[0].Kind != w.Kind || all[0].Znode != g.Znode() {
				t.Errorf("%s: the contenders are %+v", w.Name, all)
			}
		}
		must.Do(t, w.GiveBack(ctx, g))
		if w.Name == "name" || w.Kind == recipes.KindPriorityLock || w.Method == "Queue.Receive" {
			continue // these ways have no dialects, or a dialect in which they give no grant
		}
		for _, d := range recipes.Dialects() {
			_, err := w.Open(s, path.Join(at, string(d)), grants.Options{Dialect: d})
			if has := slices.Contains(w.Dialects, d); has && err != nil || !has && !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("%s in %s: %v; in the catalog: %v", w.Name, d, err, has)
			}
		}
	}
	must.Do(t, s.Close(ctx))
}

func TestMain(m *testing.M) { leaktest.Main(m) }
