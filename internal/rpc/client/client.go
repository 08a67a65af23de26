// Package client has the stubs of the recipes: they implement the contract (package recipes) over
// the calls of package link, which internal/rpc/server answers. This package is all that the author
// of a recipe reads.
//
// Order of use: [New] with a connection, Open of the returned client for each session, and Close
// before the connection is closed.
package client

import (
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// New returns a client over one connection, on the terms of Connect of link.Client.
func New(over grpc.ClientConnInterface, dial carry.Dialer) *link.Client {
	c := Unconnected()
	c.Use(c.Connect(over, dial, nil), false)
	return c
}

// Unconnected returns a client that can open sessions after the first Use.
func Unconnected() *link.Client {
	return link.New(func(s *link.Session) recipes.Client { return &session{Session: s} })
}

// session has a method for each recipe.
type session struct {
	*link.Session
	received received // takes that were answered
}
