// Package compare tells what became better or worse between two sets of results,
// so that a build can depend on it.
//
//  1. Collect the results of each side with [Read].
//  2. Compare them with [Compare].
//  3. Show the [Result] with [Result.Write] and act on [Result.Worse].
//
// What is compared is each unit of each benchmark that both sides have: medians
// with confidence intervals, and the Mann-Whitney U test (package benchmath, as
// benchstat does it). A change counts only if it is significant after Holm's
// correction for the number of comparisons and at least as large as the smallest
// effect that counts. Whether a change is for the better is known from the
// results' unit metadata.
//
// Trials of both sides that were made in pairs are compared by [Paired]. Counts, which are
// the same on every machine, are compared by [Counts], without statistics.
//
// Holm and not Benjamini-Hochberg: a gate that is red must be right. Holm bounds
// the probability of any false alarm in the whole comparison by alpha;
// Benjamini-Hochberg would bound the share of false ones among the alarms, and
// so finds more where a person looks at them all.
package compare
