package verb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
)

const (
	formatText = "text"
	formatJSON = "json"
)

// Result writes what the verb was asked for: all of it, or it is an error.
func (t *Tool) Result(value any, text func(io.Writer)) error {
	var b bytes.Buffer
	if t.JSON {
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		if err := e.Encode(value); err != nil {
			return err
		}
	} else {
		text(&b)
	}
	return t.Write(b.Bytes())
}

// Say is Result where the text is one line.
func (t *Tool) Say(value, text any) error {
	return t.Result(value, func(w io.Writer) { fmt.Fprintln(w, text) })
}

// Done is Result where the exit code is the answer for people.
func (t *Tool) Done(value any) error { return t.Result(value, func(io.Writer) {}) }

// Object is an object in JSON: names and values in turn, in their order.
type Object []any

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, part := range o {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		b.WriteByte("{:,"[min(i, 2-i%2)])
		b.Write(text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// None tells people that there is no result, and leaves stdout empty. In JSON the result
// shows that.
func (t *Tool) None(format string, args ...any) {
	if !t.JSON {
		t.tell(fmt.Sprintf(format, args...))
	}
}

// Stored is Result for bytes that were stored in ZooKeeper.
func (t *Tool) Stored(value any, stored []byte) error {
	if t.JSON {
		return t.Result(value, nil)
	}
	return t.Write(asStored(t.Stdout, stored))
}

// Write writes all of a result.
func (t *Tool) Write(b []byte) error {
	if len(b) == 0 { // which a stdout that was closed takes as well
		return nil
	}
	if _, err := t.Stdout.Write(b); err != nil {
		return fmt.Errorf("the result could not be written: %w", err)
	}
	return nil
}

// Line writes one change: in JSON one object a line.
func (t *Tool) Line(value any, text string) error {
	if !t.JSON {
		_, err := fmt.Fprintln(t.Stdout, text)
		return err
	}
	return json.NewEncoder(t.Stdout).Encode(value)
}

// Event is what happens to a hold, in JSON. The text for people has only the events that
// they must know.
type Event struct {
	Event   string   `json:"event"` // acquired, lost, asked, killed, exited, released, waiting, again, left, unreleased, unacknowledged, unclosed; of queue work: acknowledged, returned, unreturned, dead
	Path    string   `json:"path,omitempty"`
	Element string   `json:"element,omitempty"` // of a queue
	Token   int64    `json:"token,omitempty"`
	Code    *int     `json:"code,omitempty"` // of exited
	Cause   string   `json:"cause,omitempty"`
	Ahead   *int     `json:"ahead,omitempty"`   // of waiting: the contenders ahead
	Holders []string `json:"holders,omitempty"` // of waiting: their data
}

// Event writes an event, or for people a text, which may be empty.
func (t *Tool) Event(e Event, text string) {
	if t.JSON {
		_ = json.NewEncoder(t.Stderr).Encode(e)
	} else if text != "" {
		t.tell(text)
	}
}

// Fail says why the tool fails.
func (t *Tool) Fail(err error, code int) {
	if !t.JSON {
		t.tell(err.Error())
		return
	}
	_ = json.NewEncoder(t.Stderr).Encode(struct {
		Error string `json:"error"`
		Code  int    `json:"code"`
	}{err.Error(), code})
}

func (t *Tool) tell(text string) {
	fmt.Fprintf(t.Stderr, "zkrecipes: %s\n", strings.ReplaceAll(text, "\n", "\n\t"))
}

// List is how a list is shown in JSON: an empty one is no null.
func List[T, J any](all []T, inJSON func(T) J) []J {
	list := make([]J, 0, len(all))
	for _, one := range all {
		list = append(list, inJSON(one))
	}
	return list
}

// Table is how a list is shown as text: a header, unless it is "", and a row for each, whose
// cells end at tabs. An empty list has no header.
func Table[T any](header string, all []T, row func(T) string) func(io.Writer) {
	return func(out io.Writer) {
		if len(all) == 0 {
			return
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		if header != "" {
			fmt.Fprintln(w, header)
		}
		for _, one := range all {
			fmt.Fprintln(w, row(one))
		}
		_ = w.Flush()
	}
}

// Data is stored bytes in JSON: as text if they are text, and otherwise in base64, in a
// separate field.
type Data struct {
	Data       string `json:"data"`
	DataBase64 []byte `json:"data_base64,omitempty"`
}

// InJSON returns how bytes are shown in JSON.
func InJSON(stored []byte) Data {
	if utf8.Valid(stored) {
		return Data{Data: string(stored)}
	}
	return Data{DataBase64: stored}
}

// asStored is what is written of stored bytes. What is written to a file, or
// taken by another program, is what was stored; a terminal gets a line.
func asStored(w io.Writer, stored []byte) []byte {
	if Terminal(w) && !bytes.HasSuffix(stored, []byte{'\n'}) {
		return append(bytes.Clone(stored), '\n')
	}
	return stored
}

// Terminal reports whether w is one.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// OnOneLine shows bytes on one line, all of them, quoted where they would not be
// one or would move a terminal's cursor.
func OnOneLine(stored []byte) string {
	text := string(stored)
	quoted := strconv.Quote(text)
	if text == quoted[1:len(quoted)-1] {
		return text
	}
	return quoted
}

// Printable shows what anybody may have stored, without letting it move the
// cursor or fill the screen.
func Printable(stored []byte) string {
	const most = 80
	text := strings.ToValidUTF8(string(stored), "\uFFFD")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return OnOneLine([]byte(text))
}

// most bounds what is read from stdin; no ZooKeeper takes that much.
const most = 16 << 20

// Payload is text, or what is read from stdin if text is "-": all of it. An empty stdin is
// data, one that is closed is a mistake.
func Payload(text string) ([]byte, error) {
	if text != "-" {
		return []byte(text), nil
	}
	if closed(os.Stdin) {
		return nil, exit.Usage("stdin is closed, and there is nothing to read; nothing was done (</dev/null is an empty stdin)")
	}
	data, err := io.ReadAll(io.LimitReader(os.Stdin, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read stdin: %w", err)
	case len(data) > most:
		return nil, exit.Usage("more than %d bytes on stdin: ZooKeeper stores small things", most)
	}
	return data, nil
}
