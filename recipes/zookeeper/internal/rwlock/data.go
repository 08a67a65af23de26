package rwlock

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// envelope is what a contender of a revocable recipe keeps in its znode's data:
// what the application stored, and the marks of the recipe. It is made to be
// read, and partly written, by people:
//
//	unlock
//	zkrecipes: revocable grace=5000ms downgraded
//	<the application's data, as it is>
//
// The first line is there when the contender was asked to give way: it is the
// text's "unlock". The second is there when there is anything to say, or when
// the application's data could be mistaken for a mark. The text's literal form,
// data that is nothing but "unlock", as an operator writes it by hand, asks
// too; it has overwritten what was there, so that grace, the downgrade and the
// data are not known any more. None of that is unsafe: what is not known to be
// allowed is refused, and a writer not known to be downgraded keeps readers out.
type envelope struct {
	asked      bool
	revocable  bool
	grace      time.Duration // 0: not to be forced
	downgraded bool
	data       []byte
}

const (
	unlock   = "unlock"
	markLine = "zkrecipes:"
)

func (e envelope) encode() []byte {
	var marks []string
	if e.revocable {
		marks = append(marks, "revocable")
	}
	if e.grace > 0 {
		marks = append(marks, fmt.Sprintf("grace=%dms", e.grace.Milliseconds()))
	}
	if e.downgraded {
		marks = append(marks, "downgraded")
	}
	if len(marks) == 0 && !e.asked && !looksMarked(e.data) {
		return e.data
	}
	var b bytes.Buffer
	if e.asked {
		b.WriteString(unlock + "\n")
	}
	b.WriteString(strings.Join(append([]string{markLine}, marks...), " ") + "\n")
	b.Write(e.data)
	return b.Bytes()
}

// looksMarked reports whether plain data could be taken for an envelope.
func looksMarked(data []byte) bool {
	return bytes.HasPrefix(data, []byte(unlock)) || bytes.HasPrefix(data, []byte(markLine))
}

// decode never fails: what is no envelope is somebody's data.
func decode(raw []byte) envelope {
	rest := raw
	var e envelope
	if first, after, _ := bytes.Cut(rest, []byte("\n")); string(first) == unlock {
		e.asked, rest = true, after
	}
	first, after, terminated := bytes.Cut(rest, []byte("\n"))
	words := strings.Fields(string(first))
	if !terminated || !bytes.HasPrefix(first, []byte(markLine)) || words[0] != markLine {
		e.data = rest
		return e
	}
	for _, word := range words[1:] {
		switch {
		case word == "revocable":
			e.revocable = true
		case word == "downgraded":
			e.downgraded = true
		case strings.HasPrefix(word, "grace="):
			e.grace = parseGrace(strings.TrimPrefix(word, "grace="))
		} // words of later versions mean nothing here
	}
	e.data = after
	return e
}

// parseGrace returns 0, which allows nothing, for what it cannot read.
func parseGrace(s string) time.Duration {
	digits, ok := strings.CutSuffix(s, "ms")
	ms, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || ms < 0 || ms > int64((1<<63-1)/time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// asked is a line.Line's Asked.
func asked(data []byte) bool { return decode(data).asked }
