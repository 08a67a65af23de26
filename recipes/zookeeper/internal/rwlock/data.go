package rwlock

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// nodeData is what a contender keeps in the data of its znode: what the
// application stored, and the marks of the recipe. People can read it, and write
// part of it:
//
//	unlock
//	zkrecipes: revocable grace=5000ms downgraded
//	<the application's data, as it is>
//
// The first line is there when somebody has asked the contender to give way: it is
// the text's "unlock". The second line is there when a mark is set, or when the
// application's data could be mistaken for a mark.
//
// The text's literal form, data that is nothing but "unlock", asks too. An operator
// writes it over what was there, so grace, downgrade and data are lost. That is
// safe: without the marks nothing is allowed, and a writer that is not known to be
// downgraded keeps readers out.
type nodeData struct {
	revoked    bool // somebody has asked it to give way
	revocable  bool
	grace      time.Duration // 0: it must not be removed by force
	downgraded bool
	data       []byte // the application's
}

const (
	unlock   = "unlock"
	markLine = "zkrecipes:"
)

func (d nodeData) encode() []byte {
	var marks []string
	if d.revocable {
		marks = append(marks, "revocable")
	}
	if d.grace > 0 {
		marks = append(marks, fmt.Sprintf("grace=%dms", d.grace.Milliseconds()))
	}
	if d.downgraded {
		marks = append(marks, "downgraded")
	}
	if len(marks) == 0 && !d.revoked && !looksMarked(d.data) {
		return d.data
	}
	var b bytes.Buffer
	if d.revoked {
		b.WriteString(unlock + "\n")
	}
	b.WriteString(strings.Join(append([]string{markLine}, marks...), " ") + "\n")
	b.Write(d.data)
	return b.Bytes()
}

// looksMarked reports whether the application's data could be mistaken for marks.
func looksMarked(data []byte) bool {
	return bytes.HasPrefix(data, []byte(unlock)) || bytes.HasPrefix(data, []byte(markLine))
}

// decode never fails: data without marks is the application's.
func decode(raw []byte) nodeData {
	rest := raw
	var d nodeData
	if first, after, _ := bytes.Cut(rest, []byte("\n")); string(first) == unlock {
		d.revoked, rest = true, after
	}
	first, after, terminated := bytes.Cut(rest, []byte("\n"))
	words := strings.Fields(string(first))
	if !terminated || !bytes.HasPrefix(first, []byte(markLine)) || words[0] != markLine {
		d.data = rest
		return d
	}
	for _, word := range words[1:] {
		switch {
		case word == "revocable":
			d.revocable = true
		case word == "downgraded":
			d.downgraded = true
		case strings.HasPrefix(word, "grace="):
			d.grace = parseGrace(strings.TrimPrefix(word, "grace="))
		} // other words are those of later versions
	}
	d.data = after
	return d
}

// parseGrace returns 0, which allows nothing, for text that it cannot read.
func parseGrace(s string) time.Duration {
	digits, ok := strings.CutSuffix(s, "ms")
	ms, _ := strconv.ParseInt(digits, 10, 64) // with an error 0, or a bound
	if !ok || ms < 0 || ms > int64((1<<63-1)/time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// isRevoked reports whether the data asks the contender to give way.
func isRevoked(data []byte) bool { return decode(data).revoked }
