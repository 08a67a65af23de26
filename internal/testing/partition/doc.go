// Package partition makes a network that a test can break: hosts that are network
// namespaces of this machine, and between them nothing but this process.
//
// Each host has a TUN device, whose other end this process holds. It reads each IP
// packet and writes it to the device of the host that the packet is for, unless the
// test has broken that direction ([Network.Set]): it drops all packets or some, or
// delivers them late. So no firewall, no traffic control and no kernel module is
// needed, but root on Linux with /dev/net/tun is.
//
// In order:
//
//  1. [New] makes the network and its hosts.
//  2. [Host.Do] runs a function inside a host's network: starts a process there, or
//     connects from there.
//  3. [Network.Set], [Network.Cut] and [Network.Heal] break directions and mend them.
//  4. [Network.Close] removes everything.
//
// The package's test runs three real ZooKeeper servers and three clients on such a
// network: see the target test-partition in the Makefile.
package partition
