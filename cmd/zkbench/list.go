package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// list is a flag with values separated by commas.
type list[T comparable] struct {
	values []T
	parse  func(string) (T, error)
}

// String is called by package flag on zero values too.
func (l *list[T]) String() string {
	if l == nil {
		return ""
	}
	words := make([]string, len(l.values))
	for i, v := range l.values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ",")
}

// Set replaces the values. A value that is given twice is taken for a slip: for
// repetitions there is -count.
func (l *list[T]) Set(s string) error {
	var values []T
	for _, word := range strings.Split(s, ",") {
		v, err := l.parse(strings.TrimSpace(word))
		if err != nil {
			return err
		}
		if slices.Contains(values, v) {
			return fmt.Errorf("%v is given twice", v)
		}
		values = append(values, v)
	}
	l.values = values
	return nil
}

// parsePositive parses a number of at least one.
func parsePositive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number of at least 1", s)
	}
	return n, nil
}
