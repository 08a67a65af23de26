package verb

import (
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Element is an element of a queue in JSON.
type Element struct {
	ID       recipes.ElementID `json:"id"`
	Priority int               `json:"priority"` // 0 in a queue without priorities
	Put      time.Time         `json:"put"`
	Data
}

// ElementInJSON converts an element for JSON.
func ElementInJSON(e recipes.Element) Element {
	return Element{e.ID, e.Priority, e.Put.UTC(), InJSON(e.Data)}
}
