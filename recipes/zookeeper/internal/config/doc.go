// Package config has the configuration, the counter and the latch: values that
// sessions change by compare-and-set.
//
// # Configuration
//
// It follows ZooKeeper Recipes, "Out of the Box Applications": keys are znodes, and the
// API does the work. It diverges in what is compared. The API compares versions, which
// overflow and begin again. Here the caller names the mzxid of the value that it has
// seen. That is compared with the present one, and the change is sent once, with the
// version that was read with it, on the same connection (session.Session.CommitRead).
// After a lost reply the receipt tells whose change it was, even if another client has
// written the same value. Znodes are persistent, and so are their parents.
//
// # Counter and latch
//
// They follow no text. A counter is a compare-and-set loop on a decimal number. A
// receipt, a child of the counter's znode, makes each change happen once. (The number
// could hold a GUID of its last writer instead. But then nothing would be known of the
// writer before that one, and an operator could not set the number with a shell.)
//
// A latch is such a number, and a znode open. The transaction that counts to 0 creates
// open. Waiters watch open and not the number, as those that enter a double barrier
// watch ready.
package config
