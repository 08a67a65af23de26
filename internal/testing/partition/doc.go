// Package partition simulates a network that a test can break. Its hosts are network
// namespaces of this machine, and this process forwards all packets between them.
//
// Each host has a TUN device, whose other end this process holds. The process reads each
// IP packet and writes it to the device of the destination host. If the test has broken
// that direction ([Network.Set]), the process drops all or some packets, or delivers them
// late. This needs root on Linux and /dev/net/tun, but no firewall, no traffic control and
// no other kernel module.
//
// Use, in this order:
//
//  1. [New] creates the network and its hosts.
//  2. [Host.Do] runs a function in the network of a host, for example to start a process
//     or to connect.
//  3. [Network.Set], [Network.Out] and [Network.In] break directions. [Network.Heal]
//     repairs all of them.
//  4. [Network.Close] removes the network.
//
// The package's test runs three real ZooKeeper servers, three clients, and contenders of
// Curator and kazoo on such a network: .ci/suite partition runs it.
package partition
