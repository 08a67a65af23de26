package main

import (
	"bytes"
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

// result writes what the verb was asked for: all of it, or it is an error.
func (o *output) result(value any, text func(io.Writer)) error {
	var b bytes.Buffer
	if o.json {
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		if err := e.Encode(value); err != nil {
			return err
		}
	} else {
		text(&b)
	}
	return o.write(b.Bytes())
}

// done is result where people have been told by the exit code.
func (o *output) done(value any) error { return o.result(value, func(io.Writer) {}) }

// none says, for people, that there is no result: stdout stays empty. In JSON the result
// says it.
func (o *output) none(format string, args ...any) {
	if !o.json {
		o.say(fmt.Sprintf(format, args...))
	}
}

// stored is result for bytes that somebody has stored.
func (o *output) stored(value any, stored []byte) error {
	if o.json {
		return o.result(value, nil)
	}
	return o.write(asStored(o.stdout, stored))
}

func (o *output) write(b []byte) error {
	if len(b) == 0 { // which a stdout that was closed takes as well
		return nil
	}
	if _, err := o.stdout.Write(b); err != nil {
		return fmt.Errorf("the result could not be written: %w", err)
	}
	return nil
}

// event is what happens to a hold, for those who read JSON. People are told
// only what they have to know.
type event struct {
	Event   string   `json:"event"` // acquired, lost, asked, killed, exited, released, waiting, again, left, unreleased, unacknowledged, unclosed; of queue work: acknowledged, returned, unreturned, dead
	Path    string   `json:"path,omitempty"`
	Element string   `json:"element,omitempty"` // of a queue
	Token   int64    `json:"token,omitempty"`
	Code    *int     `json:"code,omitempty"` // of exited
	Cause   string   `json:"cause,omitempty"`
	Ahead   *int     `json:"ahead,omitempty"`   // of waiting: the contenders ahead
	Holders []string `json:"holders,omitempty"` // of waiting: their data
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
