package verb

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
)

// Data are bytes that somebody stored, in JSON: as text where they are text, and otherwise
// in base64, in a field of its own.
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
