package hostconfig

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
)

// decode decodes an attribute and reports its success. For a missing attribute it returns
// false, and reports no mistake.
func decode[T any](r *reader, a *hcl.Attribute, expected string, into *T) bool {
	if a == nil {
		return false
	}
	var value T
	diags := gohcl.DecodeExpression(a.Expr, nil, &value)
	for _, d := range diags {
		d.Detail = strings.TrimSuffix(d.Detail, ".") + ". Expected " + expected + "."
	}
	r.diagnose(diags)
	if diags.HasErrors() {
		return false
	}
	*into = value
	return true
}

func (r *reader) duration(a *hcl.Attribute, into *time.Duration) {
	var text string
	if !decode(r, a, durationExpected, &text) {
		return
	}
	d, ok := parseDuration(text)
	if !ok {
		r.wrong(a.Expr.Range(), "Invalid "+a.Name, "Expected %s, not %q.", durationExpected, text)
		return
	}
	*into = d
}

const durationExpected = `a duration of at least "1ms", such as "10s"`

func parseDuration(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= time.Millisecond
}

func (r *reader) logLevel(a *hcl.Attribute) {
	var name string
	if !decode(r, a, levelExpected, &name) {
		return
	}
	if l := hclog.LevelFromString(name); l != hclog.NoLevel {
		r.cfg.LogLevel = l
		return
	}
	r.wrong(a.Expr.Range(), "Invalid log_level", "Expected %s, not %q.", levelExpected, name)
}

const levelExpected = "trace, debug, info, warn, error or off"

func isChecksum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}
