// Package ensembles tests the recipes on ensembles as operators run them: with observers,
// local sessions, read-only mode, different timeouts, enforced authentication, quotas, and
// servers that move, are replaced or are upgraded. It has only tests. All of them run on real
// servers, and their names begin with TestEnsemble.
//
// Most check one promise: a holder that is cut off is notified before the next contender is
// granted. Package lease argues why that holds. Each test here is a setting on which the
// argument depends.
package ensembles
