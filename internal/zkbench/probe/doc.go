// Package probe looks at the load generator while it measures. It tells how much
// processor time this process took, how long its goroutines waited to run, and how long
// the garbage collector stopped them.
//
//  1. [Start] before the measured part.
//  2. [Probe.Stop] after it.
//  3. [Limits.Check] says whether the generator itself was the limit.
package probe
