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
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	formatText = "text"
	formatJSON = "json"
)

// Every exit of the tool makes what it writes printable, because most of it comes from servers,
// other clients, the plugin or files. The exits of a line and of a table's cell also change
// newlines and tabs, which would forge another line or cell. Only Stored writes bytes as they are.

// Result writes the result of the verb, in JSON or as text. It writes all of it or returns an
// error. text must end lines that have outside text with Row or Table.
func (t *Tool) Result(value any, text func(io.Writer)) error {
	if t.JSON {
		return result(writeJSON(t.Stdout, value, "  "))
	}
	var b strings.Builder
	text(&b)
	return t.write(printable.Text(b.String()))
}

func writeJSON(w io.Writer, value any, indent string) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	if err := e.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(w, printable.JSON(b.String()))
	return err
}

// Say is Result with a text of one line.
func (t *Tool) Say(value, text any) error {
	return t.Result(value, func(w io.Writer) { Row(w, "%v", text) })
}

// Row writes one line, whatever the arguments contain.
func Row(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, printable.Line(fmt.Sprintf(format, args...)))
}

// Done is Result without a text: the exit code is the answer.
func (t *Tool) Done(value any) error { return t.Result(value, func(io.Writer) {}) }

// Object is a JSON object: names and values in turn. It keeps their order.
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

// None reports an empty result on stderr, so that stdout stays empty. In JSON the result
// itself shows it.
func (t *Tool) None(format string, args ...any) {
	if !t.JSON {
		t.say(fmt.Sprintf(format, args...))
	}
}

// Stored is Result for bytes that are stored in ZooKeeper. It writes them unchanged to files
// and pipes. To a terminal it writes them printable, and with a final newline.
func (t *Tool) Stored(value any, stored []byte) error {
	if t.JSON {
		return t.Result(value, nil)
	}
	text := string(stored)
	if Terminal(t.Stdout) {
		text = printable.Text(strings.TrimSuffix(text, "\n") + "\n")
	}
	return t.write(text)
}

func (t *Tool) write(text string) error {
	if text == "" { // no error even if stdout is closed
		return nil
	}
	_, err := io.WriteString(t.Stdout, text)
	return result(err)
}

func result(err error) error {
	if err != nil {
		return fmt.Errorf("the result could not be written: %w", err)
	}
	return nil
}

// Line writes one change on one line.
func (t *Tool) Line(value any, text string) error {
	if t.JSON {
		return writeJSON(t.Stdout, value, "")
	}
	_, err := fmt.Fprintln(t.Stdout, printable.Line(text))
	return err
}

// Event is an event of a hold, a delivery or a wait, in JSON. docs/tool.md lists them.
type Event struct {
	Event   string   `json:"event"`
	Path    string   `json:"path,omitempty"`
	Element string   `json:"element,omitempty"` // of a queue
	Token   int64    `json:"token,omitempty"`
	Code    *int     `json:"code,omitempty"` // of exited
	Cause   string   `json:"cause,omitempty"`
	Ahead   *int     `json:"ahead,omitempty"`   // of waiting: the number of contenders ahead
	Holders []string `json:"holders,omitempty"` // of waiting: the data of the holders
	Shares  string   `json:"shares,omitempty"`  // of owns: the numbers, with commas
	URL     string   `json:"url,omitempty"`     // of status
}

// Event writes an event to stderr. In text it writes only text, if there is any.
func (t *Tool) Event(e Event, text string) {
	if t.JSON {
		_ = writeJSON(t.Stderr, e, "")
	} else if text != "" {
		t.say(text)
	}
}

// Fail writes the error of the verb, and in JSON its exit code.
func (t *Tool) Fail(err error, code int) {
	if !t.JSON {
		t.say(err.Error())
		return
	}
	_ = writeJSON(t.Stderr, struct {
		Error string `json:"error"`
		Code  int    `json:"code"`
	}{err.Error(), code}, "")
}

func (t *Tool) say(text string) { _, _ = io.WriteString(t.Stderr, entry("zkrecipes: "+text)) }

// entry is a message or a log entry. Its later lines are indented, so that none looks like another
// entry.
func entry(text string) string {
	return strings.ReplaceAll(printable.Text(strings.TrimSuffix(text, "\n")), "\n", "\n\t") + "\n"
}

// List converts a list for JSON. An empty list is [] and not null.
func List[T, J any](all []T, inJSON func(T) J) []J {
	list := make([]J, 0, len(all))
	for _, one := range all {
		list = append(list, inJSON(one))
	}
	return list
}

// Table shows a list as text: header, unless it is "", and one row of cells for each element. Tabs
// separate the titles in header. An empty list has no header.
func Table[T any](header string, all []T, cells func(T) []string) func(io.Writer) {
	return func(out io.Writer) {
		if len(all) == 0 {
			return
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		if header != "" {
			fmt.Fprintln(w, header)
		}
		for _, one := range all {
			fmt.Fprintln(w, strings.Join(List(cells(one), printable.Line), "\t"))
		}
		_ = w.Flush()
	}
}

// Data is stored bytes in JSON: text if they are UTF-8, otherwise base64 in a separate field.
type Data struct {
	Data       string `json:"data"`
	DataBase64 []byte `json:"data_base64,omitempty"`
}

// InJSON converts stored bytes for JSON.
func InJSON(stored []byte) Data {
	if utf8.Valid(stored) {
		return Data{Data: string(stored)}
	}
	return Data{DataBase64: stored}
}

// Terminal reports whether w is a terminal.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Size returns the size of the terminal w, or 0, 0 if w is something else. A terminal that does
// not know its size counts as 80 by 24.
func Size(w io.Writer) (columns, rows int) {
	if !Terminal(w) {
		return 0, 0
	}
	columns, rows, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil || columns == 0 || rows == 0 {
		return 80, 24
	}
	return columns, rows
}

// OnOneLine returns all of stored on one line. It quotes bytes that contain a line break or
// would move the cursor of a terminal.
func OnOneLine(stored []byte) string {
	text := string(stored)
	quoted := strconv.Quote(text)
	if text == quoted[1:len(quoted)-1] {
		return text
	}
	return quoted
}

// Printable returns the beginning of stored, which any client may have written, on one line.
// It cannot move the cursor or fill the screen.
func Printable(stored []byte) string {
	const most = 80
	text := strings.ToValidUTF8(string(stored), "\uFFFD")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return OnOneLine([]byte(text))
}

// most bounds the data from stdin. It is far above what ZooKeeper stores in a znode.
const most = 16 << 20

// Payload returns text as bytes, or if text is "-" all bytes of stdin. An empty stdin is
// valid data, and a closed one is an error.
func Payload(text string) ([]byte, error) {
	if text != "-" {
		return []byte(text), nil
	}
	if closed(os.Stdin) {
		return nil, exit.Usage("stdin is closed, so there is nothing to read; nothing was done (</dev/null is an empty stdin)")
	}
	data, err := io.ReadAll(io.LimitReader(os.Stdin, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read stdin: %w", err)
	case len(data) > most:
		return nil, exit.Usage("more than %d bytes on stdin: ZooKeeper stores small data only", most)
	}
	return data, nil
}

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
