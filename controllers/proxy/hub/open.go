// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/refusal"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// open makes a tunnel of the connection of an agent. The cluster is that of the agent's verified
// user name, which the path must repeat: an agent has no tunnel but its own.
func (s *Server) open(w http.ResponseWriter, r *http.Request, cluster string, who caller.Caller) *refusal.Refusal {
	agent, isAgent := identity.ParseUser(who.User)
	switch {
	case !isAgent || agent.Cluster != cluster || !isAgentOf(who, cluster):
		s.refused.Add(1)
		return refusal.New(http.StatusForbidden, connectv1alpha1.CauseOtherCluster, "only the agent of cluster %s may open its tunnel", cluster)
	case r.Method != http.MethodGet || r.Header.Get("Upgrade") != tunnel.Protocol:
		return refusal.New(http.StatusBadRequest, connectv1alpha1.CauseInvalidPath, "this path is for agents that upgrade to %s", tunnel.Protocol)
	}
	if refused := s.known(cluster, http.StatusForbidden); refused != nil {
		s.refused.Add(1)
		return refused
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.Log.Error(err, "A connection cannot become a tunnel", "cluster", cluster)
		return refusal.New(http.StatusBadGateway, connectv1alpha1.CauseTunnelBroken, "the connection cannot become a tunnel")
	}
	s.tunnel(r.Context(), cluster, agent.Name, conn, buffered)
	return nil
}

// isAgentOf reports whether the groups are those of an agent of this cluster and no other.
func isAgentOf(who caller.Caller, cluster string) bool {
	clusters, agent := identity.Clusters(who.Groups)
	return agent && len(clusters) == 1 && clusters[0] == cluster
}

// tunnel answers the upgrade, and adds the tunnel.
func (s *Server) tunnel(ctx context.Context, cluster, agent string, conn net.Conn, buffered *bufio.ReadWriter) {
	log := s.Log.WithValues("cluster", cluster, "agent", agent)
	_ = conn.SetDeadline(time.Time{})
	_, err := conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + tunnel.Protocol + "\r\n\r\n"))
	if err != nil {
		_ = conn.Close()
		log.V(1).Info("Tunnel was not opened", "error", err.Error())
		return
	}
	t, hello, err := tunnel.Accept(ctx, read{Conn: conn, from: buffered.Reader}, s.Version, s.Clock)
	if err != nil {
		s.refused.Add(1)
		log.Info("Tunnel refused", "error", err.Error())
		return
	}
	log.Info("Tunnel opened", "agentVersion", hello.Program)
	s.Registry.add(cluster, t)
	// The cluster may have been removed since it was looked up.
	if refused := s.known(cluster, http.StatusForbidden); refused != nil {
		t.Close(errNotAccepted)
	}
}

// read is a connection of which the server has read some bytes already.
type read struct {
	net.Conn
	from *bufio.Reader
}

// Read implements net.Conn.
func (r read) Read(b []byte) (int, error) { return r.from.Read(b) }
