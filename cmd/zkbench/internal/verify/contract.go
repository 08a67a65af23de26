package verify

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
)

// contractServer grants the timeouts that recipestest needs, and deletes empty containers soon.
var contractServer = zkserver.Config{TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute, ReapInterval: 250 * time.Millisecond}

// closing bounds the end of the plugin after the parts.
const closing = 30 * time.Second

// contractParts launches the plugin, and returns the parts that use it.
func (o Options) contractParts(ctx context.Context) (parts []part, stop func(), err error) {
	p, err := host.Launch(ctx, host.Config{Path: o.Command[0], Args: o.Command[1:]})
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not a plugin, or does not start: %w", o.Command[0], err)
	}
	stop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		_ = p.Close(ctx) // parts leave sessions that they have cut off
	}
	info, err := p.Info(ctx)
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("%s does not describe itself: %w", o.Command[0], err)
	}
	for _, c := range recipestest.Parts() {
		parts = append(parts, part{"contract/" + c.Group + "/" + c.Name, func(ctx context.Context) error {
			l := &lacks{capabilities: info.Capabilities}
			l.tests(c.Group)
			result := c.Check(ctx, recipestest.Env{Open: l.opener(p.Open), Servers: func(testing.TB) []string { return o.Servers }})
			switch missing := l.String(); {
			case missing != "":
				return skipped("the plugin lacks the capability " + missing)
			case len(result.Failures) > 0:
				return failures(result.Failures)
			case result.Skipped != "":
				return skipped(result.Skipped)
			}
			return nil
		}})
	}
	return parts, stop, nil
}
