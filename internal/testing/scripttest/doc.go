// Package scripttest prevents tests of testscript files from hanging, and from depending
// on the signals that their parent process ignores.
//
//  1. [ResetSignals], in TestMain, before the tests run.
//  2. [Bound], in testscript.Params.Setup, for each script.
package scripttest
