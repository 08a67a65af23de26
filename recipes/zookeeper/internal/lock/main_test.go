package lock

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
