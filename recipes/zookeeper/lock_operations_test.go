package zookeeper_test

import (
	"github.com/zkrecipes/zkrecipes/recipes"
)

func lockWays() []way {
	open := func(s recipes.Client, path string, o options) (recipes.Lock, error) {
		return s.Lock(path, recipes.LockConfig{Strategy: o.strategy, Dialect: o.dialect, Joined: o.joined, Data: []byte("who")})
	}
	w := way{
		name: "lock", method: "Lock.Acquire", tries: "Lock.TryAcquire", gives: "Hold.Release", kind: recipes.KindLock,
		shares: map[recipes.Dialect][]string{
			recipes.ZooKeeper: {"a mutex", "our lock"},
			recipes.Curator:   {"a mutex", "our lock"},
			recipes.Kazoo:     {"kazoo's lock"},
		},
		uses: []use{{operated | held, options{dialect: recipes.Curator}}, {operated, options{dialect: recipes.Kazoo}}},
	}
	for _, strategy := range recipes.Strategies() {
		w.uses = append(w.uses, use{operated | held | moved, options{strategy: strategy}})
	}
	return []way{wayBy(w, open, recipes.Lock.Acquire, recipes.Lock.TryAcquire, recipes.Hold.Release)}
}
