package line

import (
	"bytes"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// claimed is the version of a contender's znode after its claim, the only write to it.
const claimed = 1

// slotMark starts the data of a lease with a number, before the number and a line feed. The
// contender's data follow. Contenders of other recipes write their marks in the same form.
const slotMark = "zkrecipes: slot="

// SlotData returns the data that a claim writes to a lease.
func SlotData(number int, data []byte) []byte {
	return append(append(strconv.AppendInt([]byte(slotMark), int64(number), 10), '\n'), data...)
}

// Slot returns the number in a lease, and the contender's data. ok is false before the claim, and
// if another client has written to the lease.
func Slot(lease session.Node) (number int, data []byte, ok bool) {
	first, data, terminated := bytes.Cut(lease.Data, []byte("\n"))
	digits, marked := bytes.CutPrefix(first, []byte(slotMark))
	n, err := strconv.ParseUint(string(digits), 10, 31)
	if lease.Stat.Version != claimed || !terminated || !marked || err != nil {
		return 0, lease.Data, false
	}
	return int(n), data, true
}

// tokenOf returns the token of a contender that is next, and its number if it claims one. ok is
// false if another client has written to a znode with a number.
func (l *Line) tokenOf(node session.Node) (token recipes.Token, slot *int, ok bool) {
	if l.Claim == nil {
		return recipes.Token(node.Stat.Czxid), nil, true
	}
	number, _, ok := Slot(node)
	return recipes.Token(node.Stat.Mzxid), &number, ok
}
