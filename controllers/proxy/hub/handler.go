// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/refusal"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// ServeHTTP answers the API server of the hub, which has authenticated the user and has decided
// that they may do this.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, parsed := parse(r.URL)
	who, refused := s.authenticate(r)
	away := s.Leader != nil && !s.leads()
	if away { // the next request comes by a connection that can be handed on
		w.Header().Set("Connection", "close")
	}
	switch {
	case refused != nil:
	case s.documents[r.URL.Path] != nil && r.Method == http.MethodGet:
		serveDocument(w, s.documents[r.URL.Path])
		return
	case !strings.HasPrefix(r.URL.Path, connectv1alpha1.PathVersion+"/"): // such as a description of the API
		http.NotFound(w, r)
		return
	case !parsed:
		refused = refusal.New(http.StatusBadRequest, connectv1alpha1.CauseInvalidPath, "%s", mustBe(r.URL.Path))
	case away:
		refused = refusal.New(http.StatusServiceUnavailable, connectv1alpha1.CauseNoLeader, "no process of the hub leads at the moment")
		refused.RetryIn = retryLeader
	case t.tunnel:
		refused = s.open(w, r, t.cluster, who)
	default:
		refused = s.forward(w, r, t, who)
	}
	if refused != nil {
		refused.Write(w, t.cluster)
	}
}

// mustBe says what a path that means nothing must be.
func mustBe(path string) string {
	before, what := connectv1alpha1.PathManagedClusters, "NAME is that of a cluster"
	after := connectv1alpha1.SuffixProxy + "/PATH"
	if strings.HasPrefix(path, connectv1alpha1.PathClusterServices) {
		before, after = connectv1alpha1.PathClusterServices, connectv1alpha1.SuffixProxy+"/NAMESPACE/[http:|https:]SERVICE:PORT/PATH"
		what += ", PORT a number"
	}
	return fmt.Sprintf("the path must be %sNAME%s, where %s, and no part of PATH is empty, . or ..", before, after, what)
}

// authenticate returns for whom the API server asks.
func (s *Server) authenticate(r *http.Request) (caller.Caller, *refusal.Refusal) {
	f, err := s.frontProxy()
	if err == nil && r.TLS == nil {
		err = errNotFrontProxy
	}
	if err == nil {
		err = f.verify(r.TLS.PeerCertificates, s.Clock.Now())
	}
	if err != nil {
		return caller.Caller{}, refusal.New(http.StatusUnauthorized, connectv1alpha1.CauseNotFrontProxy, "%s", err)
	}
	return f.caller(r.Header), nil
}

// known returns a refusal unless the cluster is accepted; code is that for one that is not.
func (s *Server) known(cluster string, code int) *refusal.Refusal {
	switch c, found := s.clusters.Get(reconcile.Key{Name: cluster}); {
	case !found:
		return refusal.New(http.StatusNotFound, connectv1alpha1.CauseUnknownCluster, "this hub has no cluster %q", cluster)
	case !c.accepted:
		return refusal.New(code, connectv1alpha1.CauseNotAccepted, "cluster %s is not accepted by this hub, or is being removed", cluster)
	}
	return nil
}
