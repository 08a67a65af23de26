// Package list has flags whose value is a list.
package list

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Flag returns the flag of a list of values, without any that is given twice: -count is for
// repetitions. parse parses one value.
func Flag[T comparable](values *[]T, parse func(string) (T, error)) flag.Value {
	return list[T]{values, parse}
}

type list[T comparable] struct {
	values *[]T
	parse  func(string) (T, error)
}

// String is called by package flag on zero values too.
func (l list[T]) String() string {
	if l.values == nil {
		return ""
	}
	text := fmt.Sprint(*l.values)
	return strings.ReplaceAll(text[1:len(text)-1], " ", ",")
}

func (l list[T]) Set(s string) error {
	var values []T
	for _, word := range strings.Split(s, ",") {
		words, err := expand(strings.TrimSpace(word))
		if err != nil {
			return err
		}
		for _, word := range words {
			v, err := l.parse(word)
			if err != nil {
				return err
			}
			if slices.Contains(values, v) {
				return fmt.Errorf("%v is given twice", v)
			}
			values = append(values, v)
		}
	}
	*l.values = values
	return nil
}

var ranged = regexp.MustCompile(`^(\d{1,7})\.\.(\d{1,7})(?::(\d{1,7}))?$`)

// expand returns the numbers of a range, or the word itself if it is not a range. A range
// without a step has both ends and the steps 1, 2, 5, 10, ... between them.
func expand(word string) ([]string, error) {
	parts := ranged.FindStringSubmatch(word)
	if parts == nil {
		return []string{word}, nil
	}
	from, _ := strconv.Atoi(parts[1])
	to, _ := strconv.Atoi(parts[2])
	step, _ := strconv.Atoi(parts[3])
	if from < 1 || to < from || parts[3] != "" && step < 1 {
		return nil, fmt.Errorf("range %q: from 1 or more, upwards, in steps of 1 or more", word)
	}
	if parts[3] != "" && (to-from)/step > 1000 {
		return nil, fmt.Errorf("range %q has more than a thousand values", word)
	}
	var words []string
	for n := from; n < to; n = following(n, step) {
		words = append(words, strconv.Itoa(n))
	}
	return append(words, strconv.Itoa(to)), nil
}

func following(n, step int) int {
	if step > 0 {
		return n + step
	}
	for decade := 1; ; decade *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*decade > n {
				return m * decade
			}
		}
	}
}

// Positive parses a number of at least 1.
func Positive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number of at least 1", s)
	}
	return n, nil
}
