package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

const (
	formatText = "text"
	formatJSON = "json"
)

// output is how a verb speaks. Results go to stdout; stderr gets the rest, in
// JSON one object a line.
type output struct {
	stdout, stderr io.Writer
	json           bool
}

// result writes what the verb was asked for.
func (o *output) result(value any, text func(io.Writer)) error {
	if !o.json {
		text(o.stdout)
		return nil
	}
	e := json.NewEncoder(o.stdout)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// event is what happens to a hold, for those who read JSON. People are told
// only what they have to know.
type event struct {
	Event string `json:"event"` // acquired, lost, exited, released
	Path  string `json:"path"`
	Token int64  `json:"token,omitempty"`
	Code  *int   `json:"code,omitempty"` // of exited
	Cause string `json:"cause,omitempty"`
}

func (o *output) event(e event, text string) {
	if o.json {
		_ = json.NewEncoder(o.stderr).Encode(e)
	} else if text != "" {
		o.say(text)
	}
}

// fail says why the tool fails.
func (o *output) fail(err error, code int) {
	if !o.json {
		o.say(err.Error())
		return
	}
	_ = json.NewEncoder(o.stderr).Encode(struct {
		Error string `json:"error"`
		Code  int    `json:"code"`
	}{err.Error(), code})
}

func (o *output) say(text string) {
	fmt.Fprintf(o.stderr, "zkrecipes: %s\n", strings.ReplaceAll(text, "\n", "\n\t"))
}
