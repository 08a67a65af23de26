//go:build !unix

package main

import "os"

// Here an interrupt reaches the command without our help, and a process can
// only be killed.

var relayed = []os.Signal{os.Interrupt}

func dropped(os.Signal) bool { return false }
func ends(os.Signal) bool    { return true }

func (c *child) arrange()       {}
func (c *child) pass(os.Signal) {}
func (c *child) terminate()     { c.kill() }
func (c *child) kill()          { _ = c.cmd.Process.Kill() }
func (c *child) exitCode() int  { return c.cmd.ProcessState.ExitCode() }
