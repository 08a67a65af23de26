package client

import (
	"context"
	"fmt"
	"slices"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// hasDialect fails, with ErrUnsupported, if the plugin does not read a request's dialect.
// It would make a contender of the default, who stands beside those that it should
// exclude. The plugin is asked once.
func (s *session) hasDialect(ctx context.Context, what, dialect string) error {
	if dialect == "" || s.latest().plugin.speaks.Load() {
		return nil
	}
	p := s.latest().plugin // at the latest; another one is asked again
	r, err := query(ctx, s, what, func(ctx context.Context) (*pb.InfoResponse, error) {
		return pb.NewPluginServiceClient(s.conn).Info(ctx, &pb.InfoRequest{})
	})
	if err != nil {
		return err
	}
	if !slices.Contains(r.GetCapabilities(), "dialects") {
		return fmt.Errorf("%s: %w: the plugin has no dialects, so not %q", what, recipes.ErrUnsupported, dialect)
	}
	p.speaks.Store(true)
	return nil
}
