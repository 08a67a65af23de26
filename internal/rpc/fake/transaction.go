package fake

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Transaction is not in this world.
func (s *Session) Transaction(string, recipes.TransactionConfig) (recipes.Transaction, error) {
	return nil, fmt.Errorf("%w: transactions are not in the fake", recipes.ErrInvalid)
}
