// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/internal/service"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Service is a port of a Service of a managed cluster, and how it is spoken to. In what a cluster exposes, no
// Protocol or Port means any; in what a user asks for, that it is not named.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"service"`
	Port      uint16 `json:"port,omitempty"`
	// Protocol is http or https.
	Protocol string `json:"protocol,omitempty"`
}

// String names it as ParseService reads it.
func (s Service) String() string {
	out := s.Name
	if s.Protocol != "" {
		out = s.Protocol + ":" + out
	}
	if s.Port != 0 {
		out += ":" + strconv.Itoa(int(s.Port))
	}
	return s.Namespace + "/" + out
}

func (s Service) target() service.Target {
	return service.Target{Namespace: s.Namespace, Name: s.Name, Scheme: s.Protocol, Port: s.Port}
}

// ParseService reads NAMESPACE/[http:|https:]NAME[:PORT]. Without a slash the namespace is the given one.
func ParseService(namespace, text string) (s Service, ok bool) {
	before, element, cut := strings.Cut(text, "/")
	if cut {
		namespace = before
	} else {
		element = text
	}
	if scheme, rest, cut := strings.Cut(element, ":"); cut && (scheme == "http" || scheme == "https") && !isNumber(rest) {
		s.Protocol, element = scheme, rest
	}
	name, port, numbered := strings.Cut(element, ":")
	if !numbered {
		port = "1" // any, to have the names judged
	}
	t, ok := service.Parse(namespace, name+":"+port)
	s.Namespace, s.Name = t.Namespace, t.Name
	if numbered {
		s.Port = t.Port
	}
	return s, ok
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// Exposed returns what a cluster exposes, as its list in the namespace of its agent says. It is read through the hub
// with the rights that the user has on the cluster.
func Exposed(ctx context.Context, hub *fleet.Cluster, cluster, namespace string) ([]Service, error) {
	way, at := Way{Cluster: cluster}, "configmap "+namespace+"/"+connectv1alpha1.ConfigMapExposedServices
	body, err := request(ctx, hub, way.path()+"/api/v1/namespaces/"+namespace+"/configmaps/"+connectv1alpha1.ConfigMapExposedServices)
	var status apierrors.APIStatus
	switch {
	case err == nil:
	case errors.As(err, &status) && apierrors.IsNotFound(err) && isOf(status, fleet.ConfigMaps.Resource):
		return nil, nil
	case errors.As(err, &status) && apierrors.IsForbidden(err) && isOf(status, fleet.ConfigMaps.Resource):
		return nil, failed("what cluster "+cluster+" exposes cannot be read", status, err, GrantList.With("namespace", namespace))
	default:
		return nil, explain(ctx, hub, way, err)
	}
	var list corev1.ConfigMap
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("reading %s of cluster %s: %w", at, cluster, err)
	}
	read, err := service.ReadList(list.Data)
	if err != nil {
		return nil, &fleet.Error{Message: "what cluster " + cluster + " exposes cannot be read",
			Cause: at + ": " + fleet.OneLine(err.Error()) + "; the list before it stays in effect", Fix: EditList.With("namespace", namespace), Err: err}
	}
	seen := map[Service]bool{}
	for _, t := range read.Entries() {
		seen[Service{Namespace: t.Namespace, Name: t.Name, Port: t.Port, Protocol: t.Scheme}] = true
	}
	return slices.SortedFunc(maps.Keys(seen), compareServices), nil
}

func compareServices(a, b Service) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port),
		strings.Compare(a.Protocol, b.Protocol))
}

// isOf reports whether an answer is one of an API server about a kind.
func isOf(status apierrors.APIStatus, resource string) bool {
	d := status.Status().Details
	return causeOf(status) == "" && d != nil && d.Kind == resource
}

// Choose completes what a user asks for by what the cluster exposes: the port and the protocol that are not named. A
// protocol that nothing decides is https. What is named wholly needs no list.
func Choose(ctx context.Context, hub *fleet.Cluster, cluster, namespace string, wanted Service) (Service, error) {
	if wanted.Port != 0 && wanted.Protocol != "" {
		return wanted, nil
	}
	exposed, err := Exposed(ctx, hub, cluster, namespace)
	if err != nil && wanted.Port != 0 {
		wanted.Protocol = "https" // the cluster will say what it thinks of that
		return wanted, nil
	}
	if err != nil {
		return wanted, err
	}
	return wanted.choose(hub, cluster, namespace, exposed)
}

// covers reports whether an entry of a list exposes what a user asks for, or a part of it.
func (s Service) covers(wanted Service) bool {
	return s.Namespace == wanted.Namespace && s.Name == wanted.Name && (s.Port == 0 || wanted.Port == 0 || s.Port == wanted.Port) &&
		(s.Protocol == "" || wanted.Protocol == "" || s.Protocol == wanted.Protocol)
}

// choose does it from a list.
func (s Service) choose(hub *fleet.Cluster, cluster, namespace string, exposed []Service) (Service, error) {
	ports, protocols := map[uint16]bool{}, map[string]bool{}
	for _, e := range exposed {
		if e.covers(s) {
			ports[e.Port], protocols[e.Protocol] = true, true
		}
	}
	switch {
	case len(ports) == 0:
		return s, notExposed(cluster, namespace, s)
	case s.Port == 0 && ports[0]:
		return s, &fleet.Error{Kind: fleet.Usage, Message: "which port of Service " + s.String() + " is not said",
			Cause: "cluster " + cluster + " exposes all of its ports", Fix: ShowServices.On(hub, "cluster", cluster, "namespace", s.Namespace)}
	case s.Port == 0 && len(ports) > 1:
		return s, &fleet.Error{Kind: fleet.Usage, Message: "which port of Service " + s.String() + " is not said",
			Cause: "cluster " + cluster + " exposes several", Fix: ListServices.On(hub, "cluster", cluster)}
	}
	if s.Port == 0 {
		s.Port = slices.Collect(maps.Keys(ports))[0]
	}
	if s.Protocol == "" && len(protocols) == 1 {
		s.Protocol = slices.Collect(maps.Keys(protocols))[0]
	}
	s.Protocol = cmp.Or(s.Protocol, "https")
	return s, nil
}

// notExposed is the error for a Service that the list of its cluster does not name.
func notExposed(cluster, namespace string, s Service) *fleet.Error {
	return &fleet.Error{Message: "cluster " + cluster + " does not expose Service " + s.String(),
		Cause: "no entry of configmap " + namespace + "/" + connectv1alpha1.ConfigMapExposedServices + " there names it",
		Fix:   s.expose(namespace)}
}

// expose returns what adds the Service to the list of its cluster, beside what it has.
func (s Service) expose(namespace string) fleet.Fix {
	entry, err := json.Marshal([]Service{s})
	if err != nil {
		return nil // not reached: names and a number can be encoded
	}
	return ExposeService.With("namespace", namespace, "key", strings.NewReplacer("/", ".", ":", ".").Replace(s.String()), "entry", string(entry))
}
