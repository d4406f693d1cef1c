// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// FieldManager is the field manager of everything the plugin applies.
const FieldManager = "kubectl-ocm"

// Cluster is a connection to one API server with the caller's rights. It sends nothing before
// the first request.
type Cluster struct {
	// Context is the kubeconfig context it came from, for messages and hints; empty for
	// connections made from a token.
	Context string
	// Config is how to reach the API server. It must not be changed.
	Config *rest.Config
	// Client reads and writes objects.
	Client dynamic.Interface

	raw  rest.Interface
	date *serverDate
}

// Connect returns a connection to the cluster that config points to. It sends no request.
func Connect(config *rest.Config, contextName string) (*Cluster, error) {
	c := rest.CopyConfig(config)
	if c.QPS == 0 {
		c.QPS, c.Burst = 100, 200
	}
	date := &serverDate{}
	c.Wrap(date.read)
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", c.Host, err)
	}
	r := rest.CopyConfig(c)
	r.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	r.GroupVersion = &schema.GroupVersion{Version: "v1"}
	raw, err := rest.UnversionedRESTClientFor(r)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", c.Host, err)
	}
	return &Cluster{Context: contextName, Config: c, Client: client, raw: raw, date: date}, nil
}

// Server returns the URL of the API server.
func (c *Cluster) Server() string { return c.Config.Host }

// String names the cluster by context and server.
func (c *Cluster) String() string {
	if c.Context == "" {
		return c.Config.Host
	}
	return fmt.Sprintf("context %s (%s)", c.Context, c.Config.Host)
}

// Where names the cluster briefly, for hints.
func (c *Cluster) Where() string {
	if c.Context == "" {
		return c.Config.Host
	}
	return "context " + c.Context
}

// Called returns the context, or the address of a cluster without one.
func (c *Cluster) Called() string {
	if c.Context == "" {
		return c.Config.Host
	}
	return c.Context
}

// Get sends one GET request and returns the body.
func (c *Cluster) Get(ctx context.Context, path string) ([]byte, error) {
	return c.raw.Get().AbsPath(path).Do(ctx).Raw()
}

// ReachTimeout bounds the first request to a cluster, so that a wrong address is reported soon
// and not only after the whole deadline.
const ReachTimeout = 10 * time.Second
