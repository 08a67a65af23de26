// Package scripttest keeps tests that run testscript files from hanging and from
// depending on how they were started.
//
//  1. [ResetSignals], in TestMain, before the tests run.
//  2. [Bound], in testscript.Params.Setup, for each script.
package scripttest
