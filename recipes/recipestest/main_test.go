package recipestest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(ensembletest.Owner{Tests: m}) }
