package table

import (
	"strings"
	"unicode/utf8"
)

// gap is between two columns.
const gap = "  "

// Align returns rows of as many cells each as lines with columns. The first left
// columns are aligned to the left, as words are. The others are aligned to the right,
// as numbers are.
func Align(rows [][]string, left int) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := make([]string, len(row))
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < left {
				line[i] = cell + padding
			} else {
				line[i] = padding + cell
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(line, gap), " ") + "\n")
	}
	return b.String()
}
