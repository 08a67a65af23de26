package benchtest

import "github.com/zkrecipes/zkrecipes/recipes"

func (s *session) Transaction(string, recipes.TransactionConfig) (recipes.Transaction, error) {
	return nil, errNotHere("transaction")
}
