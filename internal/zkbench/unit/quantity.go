package unit

import (
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchunit"
)

// Quantity writes a value in its unit for people, with three or four digits.
func Quantity(unit string, v float64) string {
	switch {
	case strings.HasSuffix(unit, "-ns") || strings.Contains(unit, "ns/op"):
		d := time.Duration(v)
		if d < time.Microsecond {
			return d.String()
		}
		digits := math.Pow(10, math.Floor(math.Log10(v))-2)
		return d.Round(time.Duration(digits)).String()
	case v < 1:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case v < 10_000:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return benchunit.Scale(v, benchunit.Decimal)
}
