// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// reviewParallel bounds the access reviews in flight.
const reviewParallel = 8

// executor splits the NAMESPACE/NAME of a ServiceAccount; ok is false when it is malformed.
func (o *Options) executor() (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(o.Executor, "/")
	return namespace, name, ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}

// wantedRight is a verb on a resource; an empty name means every object.
type wantedRight struct {
	verb, namespace, name string
	resource              schema.GroupVersionResource
}

// CheckExecutor asks the cluster of o.Spoke whether the executor exists and has the rights
// that applying the manifests requires: the agent would apply only the manifests for which it
// has them. Kinds that the cluster does not serve yet are skipped. The fix of a refusal grants
// the first of the missing rights.
func CheckExecutor(ctx context.Context, o Options) error {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	clusters, err := o.clusters(ctx)
	if err != nil {
		return err
	}
	if err := o.oneForSpoke(clusters); err != nil {
		return err
	}
	namespace, name, _ := o.executor()
	_, err = o.Spoke.Client.Resource(fleet.ServiceAccounts).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fleet.Refuse(fmt.Sprintf("%s has no ServiceAccount %s", o.Spoke, o.Executor), "nothing would be applied",
			CreateExecutor.On(o.Spoke, "name", name, "namespace", namespace))
	}
	if err != nil {
		return fleet.Explain("reading serviceaccount "+o.Executor, o.Spoke, err)
	}
	kinds, err := o.Spoke.Kinds()
	if err != nil {
		return err
	}
	missing, err := o.missingRights(ctx, o.rights(kinds))
	if err != nil || len(missing) == 0 {
		return err
	}
	first := missing[0]
	var verbs []string
	for _, m := range missing {
		if m.resource == first.resource && m.namespace == first.namespace {
			verbs = append(verbs, m.verb)
		}
	}
	slices.Sort(verbs)
	verbs = slices.Compact(verbs)
	kind, where := "clusterrole", ""
	if first.namespace != "" {
		kind, where = "role", " in namespace "+first.namespace
	}
	return fleet.Refuse(fmt.Sprintf("the executor %s lacks %s", o.Executor, fleet.Many(len(missing), "right")),
		fmt.Sprintf("on %s it may not %s %s%s", o.Spoke.Called(), strings.Join(verbs, ", "), first.resource.GroupResource(), where),
		GrantRights.On(o.Spoke, "kind", kind, "role", name+"-"+first.resource.Resource, "verbs", strings.Join(verbs, ","),
			"resource", first.resource.GroupResource().String(), "namespace", first.namespace, "account", namespace+":"+name))
}

// rights returns what applying the manifests requires, without duplicates.
func (o *Options) rights(kinds *fleet.Served) []wantedRight {
	verbs := []string{"create", "get", "patch", "update"}
	if !o.Orphan {
		verbs = append(verbs, "delete")
	}
	var out []wantedRight
	seen := map[wantedRight]bool{}
	for _, m := range o.Manifests {
		kind, ok := kinds.Of(m.GroupVersionKind())
		if !ok {
			continue
		}
		namespace := m.GetNamespace()
		if !kind.Namespaced {
			namespace = ""
		}
		for _, verb := range verbs {
			if r := (wantedRight{verb, namespace, m.GetName(), kind.Resource}); !seen[r] {
				seen[r] = true
				out = append(out, r)
			}
		}
	}
	return out
}

// missingRights returns the rights that the executor does not have, in order. A right on every
// object of a resource is reviewed once.
func (o *Options) missingRights(ctx context.Context, wanted []wantedRight) ([]wantedRight, error) {
	var all []wantedRight
	for _, r := range wanted {
		if r.name = ""; !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	may, err := o.review(ctx, all)
	if err != nil {
		return nil, err
	}
	single := slices.DeleteFunc(wanted, func(r wantedRight) bool {
		r.name = ""
		return may[r]
	})
	if may, err = o.review(ctx, single); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(single, func(r wantedRight) bool { return may[r] }), nil
}

// review asks the cluster which of the rights the executor has.
func (o *Options) review(ctx context.Context, rights []wantedRight) (map[wantedRight]bool, error) {
	answers := make([]bool, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewParallel)
	namespace, name, _ := o.executor()
	for i, r := range rights {
		group.Go(func() error {
			review := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
				"spec": map[string]any{
					"user":   "system:serviceaccount:" + namespace + ":" + name,
					"groups": []any{"system:serviceaccounts", "system:authenticated", "system:serviceaccounts:" + namespace},
					"resourceAttributes": map[string]any{"verb": r.verb, "namespace": r.namespace, "name": r.name,
						"group": r.resource.Group, "version": r.resource.Version, "resource": r.resource.Resource},
				},
			}}
			done, err := o.Spoke.Client.Resource(fleet.SubjectReviews).Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return fleet.Explain("asking for the rights of "+o.Executor, o.Spoke, err)
			}
			answers[i], _, _ = unstructured.NestedBool(done.Object, "status", "allowed")
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := map[wantedRight]bool{}
	for i, r := range rights {
		out[r] = answers[i]
	}
	return out, nil
}
