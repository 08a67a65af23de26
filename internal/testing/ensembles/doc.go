// Package ensembles tests the recipes on ensembles as operators run them, such as with
// observers, local sessions, different timeouts, quotas, or servers that move. It has only
// tests. All of them run on real servers, and their names begin with TestEnsemble. Most of them
// run only in make test-all.
//
// Most check one promise: a holder that is cut off is notified before the next contender is
// granted. Package lease argues why that holds. Each test here is a setting on which the
// argument depends.
package ensembles
