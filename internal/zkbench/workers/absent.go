package workers

import (
	"fmt"
	"strings"
)

// AbsentError says that the run cannot go on, because not everybody is there.
type AbsentError struct {
	When    string   // such as "to begin"
	Missing []string // who is missing, as "worker 2"; with who that was, if it was ever there
	Present []string // who is there
}

func (e *AbsentError) Error() string {
	present := "nobody else is there"
	if len(e.Present) > 0 {
		present = "there are " + strings.Join(e.Present, ", ")
	}
	return fmt.Sprintf("%s: missing %s; %s", e.When, strings.Join(e.Missing, ", "), present)
}
