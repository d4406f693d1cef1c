// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// heldName is the name of the cluster that the certificate in an agent's secret is
// for; "" while there is none that can be read.
func heldName(data map[string][]byte) string {
	chain, err := certificates(data[corev1.TLSCertKey])
	if err != nil {
		return ""
	}
	a, ok := identity.ParseUser(chain[0].Subject.CommonName)
	if !ok {
		return ""
	}
	return a.Cluster
}

// joinedAs is the name that an agent goes by on its hub: that of its certificate, else
// the one that it noted, else what its Klusterlet asks for. Anybody may have edited a
// Klusterlet, and the tools of others do.
func joinedAs(k *operatorv1.Klusterlet, access map[string][]byte) string {
	if name := heldName(access); name != "" {
		return name
	}
	if name := string(access[clusterv1.SecretKeyClusterName]); name != "" && CheckName(name) == nil {
		return name
	}
	return k.Spec.ClusterName
}

// readJoinedAs reads by which name the agent of a Klusterlet goes.
func readJoinedAs(ctx context.Context, c *Cluster, k *operatorv1.Klusterlet) (string, error) {
	namespace := k.Spec.Namespace
	if namespace == "" {
		namespace = operatorv1.NamespaceAgent
	}
	s, err := typed.Get[corev1.Secret](ctx, c.Client, secrets, namespace, clusterv1.SecretHubKubeconfig)
	if apierrors.IsNotFound(err) {
		return joinedAs(k, nil), nil
	}
	if err != nil {
		return "", explain("reading secret "+namespace+"/"+clusterv1.SecretHubKubeconfig, c, err)
	}
	return joinedAs(k, s.Data), nil
}

// retire removes the agent's roles and bindings of earlier releases, which had names
// that charts of others use: only those that are labelled as the agent's and that
// this program wrote. Bindings go first.
func (j *join) retire(ctx context.Context) error {
	if j.reads() || j.before == nil {
		return nil
	}
	label := operatorv1.LabelCreatedByKlusterlet + "=" + operatorv1.DefaultKlusterletName
	for _, q := range []query{
		{resource: clusterBindings, labels: label}, {resource: roleBindings, namespace: j.before.namespace(), labels: label},
		{resource: clusterRoles, labels: label}, {resource: roles, namespace: j.before.namespace(), labels: label},
	} {
		items, err := listAll(ctx, j.Spoke, q)
		if err != nil {
			return explain("listing "+q.resource.Resource, j.Spoke, err)
		}
		for i := range items {
			written := slices.ContainsFunc(items[i].GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == FieldManager })
			if !written || !slices.Contains(agent.FormerRights(), items[i].GetName()) {
				continue
			}
			if err := remove(ctx, j.Spoke, &items[i]); err != nil {
				return explain(fmt.Sprintf("removing %s, which has another name now", describe(&items[i])), j.Spoke, err)
			}
		}
	}
	return nil
}
