package workers

import (
	"encoding/json"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// message is the data of a member of the group: first who it is, later also what
// it measured.
type message struct {
	About      string `json:"about"`      // the process, for people
	Experiment string `json:"experiment"` // what it is going to run
	Root       string `json:"root"`
	Trial      int    `json:"trial,omitempty"`
	Part       []byte `json:"part,omitempty"` // see encode
}

// name is the znode of a worker.
func name(number int) string { return fmt.Sprintf("worker-%d", number) }

// member is a worker as the others see it.
type member struct {
	message
	token recipes.Token
}

func (m member) describe(number int) string { return fmt.Sprintf("worker %d (%s)", number, m.About) }

// crewOf returns the workers among the members of the group, by number; those that
// are not there are absent from it.
func crewOf(members []recipes.Member, size int) (map[int]member, error) {
	crew := map[int]member{}
	for _, m := range members {
		for number := 1; number <= size; number++ {
			if m.Name != name(number) {
				continue
			}
			w := member{token: m.Token}
			if err := json.Unmarshal(m.Data, &w.message); err != nil {
				return nil, fmt.Errorf("%s is not a worker's: %w", m.Znode, err)
			}
			crew[number] = w
		}
	}
	return crew, nil
}
