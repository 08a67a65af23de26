package recipes

import (
	"fmt"
	"time"
)

// validateGrace checks what a contender allows others.
func validateGrace(revocable bool, grace time.Duration) error {
	switch {
	case grace != 0 && !revocable:
		return fmt.Errorf("%w: Grace needs Revocable", ErrInvalid)
	case grace != 0 && grace < time.Millisecond:
		return fmt.Errorf("%w: Grace is %v; it must be a millisecond at least, or zero for none", ErrInvalid, grace)
	}
	return nil
}
