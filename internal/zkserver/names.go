package zkserver

// names is a set of names with a repeatable order: the order of insertion, except that
// the last name moves into the gap of a removed one. A map would iterate in a different
// order on each run, and a simulation could not be repeated.
// The zero value is empty and costs no map.
type names struct {
	list []string
	at   map[string]int
}

func (n *names) add(name string) {
	if n.has(name) {
		return
	}
	if n.at == nil {
		n.at = make(map[string]int)
	}
	n.at[name] = len(n.list)
	n.list = append(n.list, name)
}

func (n *names) has(name string) bool {
	_, ok := n.at[name]
	return ok
}

func (n *names) remove(name string) {
	i, ok := n.at[name]
	if !ok {
		return
	}
	last := len(n.list) - 1
	n.list[i] = n.list[last]
	n.at[n.list[i]] = i
	n.list[last] = ""
	n.list = n.list[:last]
	delete(n.at, name)
}

func (n *names) len() int { return len(n.list) }
