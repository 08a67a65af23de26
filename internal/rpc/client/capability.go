package client

import (
	"context"
	"fmt"
	"slices"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// capable makes sure that the plugin has a capability, where one without it would
// not refuse a request but leave aside what it does not know of it. The plugin is
// asked once.
func (s *session) capable(ctx context.Context, what, capability string) error {
	c := s.Client
	c.mu.Lock()
	known := c.capabilities
	c.mu.Unlock()
	if known == nil {
		info, err := ask(ctx, s, what, func(ctx context.Context) (*pb.InfoResponse, error) {
			return pb.NewPluginServiceClient(c.conn).Info(ctx, &pb.InfoRequest{})
		})
		if err != nil {
			return err
		}
		known = append([]string{}, info.GetCapabilities()...) // not nil: asked
		c.mu.Lock()
		c.capabilities = known
		c.mu.Unlock()
	}
	if !slices.Contains(known, capability) {
		return fmt.Errorf("%s: %w: it does not have the capability %q", what, recipes.ErrUnsupported, capability)
	}
	return nil
}
