// Package zookeeper implements the contract of package recipes on ZooKeeper,
// in this process. [Open] is the way in.
//
// How sessions are kept is in package session, how contenders wait in package
// line; what is here is the shape of each recipe: the names of its znodes and
// what it reads.
package zookeeper
