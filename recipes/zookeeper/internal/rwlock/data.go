package rwlock

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// nodeData is the data of a contender's znode: the application's data, and the marks of
// the recipe. An operator can read it, and write part of it:
//
//	unlock
//	zkrecipes: revocable grace=5000ms downgraded
//	<the application's data, as it is>
//
// The first line, the text's "unlock", asks the contender to give way. The second line
// exists if a mark is set, or if the application's data could be mistaken for a mark.
//
// Data that is only "unlock", as in the text, asks too. An operator who writes it
// overwrites the grace, the downgrade and the application's data. That is safe. Without
// marks nothing is allowed, and a writer without the mark of a downgrade keeps readers
// out.
type nodeData struct {
	revoked    bool // it was asked to give way
	revocable  bool
	grace      time.Duration // 0: its znode must not be deleted by force
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
		} // later versions may write other words
	}
	d.data = after
	return d
}

// parseGrace returns 0, which allows nothing, for text that it cannot read.
func parseGrace(s string) time.Duration {
	digits, ok := strings.CutSuffix(s, "ms")
	ms, _ := strconv.ParseInt(digits, 10, 64) // on an error 0, or the largest or least number
	if !ok || ms < 0 || ms > int64((1<<63-1)/time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func isRevoked(data []byte) bool { return decode(data).revoked }
