// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// gateLifetime is the feature gate that honours the limited life of ManagedServiceAccounts.
const gateLifetime = "ManagedServiceAccountEphemeralIdentity"

// identityFleet is what the hub's users asked for of identities and rights on clusters.
type identityFleet struct {
	accounts    []authenticationv1beta1.ManagedServiceAccount
	permissions []permissionv1alpha1.ClusterPermission
	// contexts are those with which the caller reaches the clusters, by their names.
	contexts map[string]string
	now      time.Time
}

// identities checks the ManagedServiceAccounts and ClusterPermissions of all clusters, or of
// the named ones. Those that are as declared share one line.
func (c *checking) identities(ctx context.Context) []Area {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	all, err := c.readIdentities(ctx)
	if err != nil {
		return []Area{{"identities", []Finding{unreadable(CodeAccountToken, err)}}}
	}
	var out []Finding
	well := 0
	add := func(name string, found []Finding) {
		if len(found) == 0 {
			well++
		}
		for _, f := range found {
			f.Title = name + ": " + f.Title
			out = append(out, f)
		}
	}
	for i := range all.accounts {
		a := &all.accounts[i]
		add("ManagedServiceAccount "+a.Namespace+"/"+a.Name, c.account(all, a))
	}
	for i := range all.permissions {
		p := &all.permissions[i]
		add("ClusterPermission "+p.Namespace+"/"+p.Name, c.permission(all, p))
	}
	out = c.foldIdentities(out)
	if well > 0 {
		out = slices.Insert(out, 0, good(CodeAccountToken, "%d of %d identities and permissions are as declared", well,
			len(all.accounts)+len(all.permissions))...)
	}
	return []Area{{"identities", out}}
}

// readIdentities reads both kinds and the clusters: three list requests, and two where neither kind has objects.
func (c *checking) readIdentities(ctx context.Context) (*identityFleet, error) {
	var accounts, permissions, clusters []unstructured.Unstructured
	if err := fleet.ListTogether(ctx, c.o.Hub,
		fleet.Into(&accounts, fleet.Query{Resource: fleet.ManagedAccounts}), fleet.Into(&permissions, fleet.Query{Resource: fleet.ClusterPermissions}),
	); err != nil {
		return nil, err
	}
	all := &identityFleet{contexts: map[string]string{}, now: c.o.Hub.Now(c.run.Now())}
	if len(accounts)+len(permissions) == 0 {
		return all, nil
	}
	if err := fleet.ListTogether(ctx, c.o.Hub, fleet.Into(&clusters, fleet.Query{Resource: fleet.ManagedClusters})); err != nil {
		return nil, err
	}
	for i := range clusters {
		if mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](&clusters[i]); err == nil {
			all.contexts[mc.Name] = c.contextOf(mc)
		}
	}
	for i := range accounts {
		if a, err := typed.FromUnstructured[authenticationv1beta1.ManagedServiceAccount](&accounts[i]); err == nil && c.concerns(a.Namespace) {
			all.accounts = append(all.accounts, *a)
		}
	}
	for i := range permissions {
		if p, err := typed.FromUnstructured[permissionv1alpha1.ClusterPermission](&permissions[i]); err == nil && c.concerns(p.Namespace) {
			all.permissions = append(all.permissions, *p)
		}
	}
	return all, nil
}

// isTold reports whether a work is that of a ClusterPermission that has a finding of its own, in the
// words of what the user has written. They are read once, and only if such a work fails.
func (c *checking) isTold(ctx context.Context, u *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(u)
	if owner == nil || owner.Kind != "ClusterPermission" {
		return false
	}
	c.readTold.Do(func() {
		all, err := c.readIdentities(ctx)
		if err != nil {
			return // twice is better than not at all
		}
		c.told = map[types.NamespacedName]bool{}
		for i := range all.permissions {
			p := &all.permissions[i]
			c.told[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = len(c.permission(all, p)) > 0
		}
	})
	return c.told[types.NamespacedName{Namespace: u.GetNamespace(), Name: owner.Name}]
}

// concerns reports whether a cluster is one of those to check.
func (c *checking) concerns(cluster string) bool {
	return len(c.o.Clusters) == 0 || slices.Contains(c.o.Clusters, cluster)
}

// foldIdentities keeps the first findings of each code and counts the others: one mistake can be made in the
// namespaces of a thousand clusters.
func (c *checking) foldIdentities(found []Finding) []Finding {
	seen := map[string]int{}
	var out []Finding
	for _, f := range found {
		if seen[f.Code]++; seen[f.Code] <= maxOfCode {
			out = append(out, f)
		}
	}
	for _, code := range []string{CodeAccountToken, CodeAccountServed, CodePermissionSpec, CodePermissionRefused, CodePermissionRoles} {
		if more := seen[code] - maxOfCode; more > 0 {
			resource := fleet.ManagedAccounts
			if code != CodeAccountToken && code != CodeAccountServed {
				resource = fleet.ClusterPermissions
			}
			out = append(out, warning(code, fmt.Sprintf("so are %d more", more), "", fleet.ShowObject.On(c.o.Hub, "resource",
				resource.GroupResource().String()+" -A", "name", "", "namespace", "")))
		}
	}
	return out
}

// account returns what keeps a ManagedServiceAccount from having a token that works.
func (c *checking) account(all *identityFleet, a *authenticationv1beta1.ManagedServiceAccount) []Finding {
	if a.DeletionTimestamp != nil {
		return nil
	}
	if s := falseIn(a.Status.Conditions, authenticationv1beta1.ConditionServed); s != nil {
		return []Finding{c.unserved(a, s)}
	}
	reported := apimeta.FindStatusCondition(a.Status.Conditions, authenticationv1beta1.ConditionTokenReported)
	show := fleet.ShowAddOn.On(c.o.Hub, "addon", authenticationv1beta1.AddOnName, "cluster", a.Namespace)
	switch {
	case reported == nil && all.now.Sub(a.CreationTimestamp.Time) < stepPatience:
		return nil
	case reported == nil:
		return []Finding{warning(CodeAccountToken, "the agent of the cluster has not answered", "it has no condition "+
			authenticationv1beta1.ConditionTokenReported, show)}
	case reported.Status == metav1.ConditionTrue:
		return nil
	case reported.Reason == authenticationv1beta1.ReasonTokenExpired:
		return []Finding{failure(CodeAccountToken, "its token has ended and was not renewed", fleet.OneLine(reported.Message), show)}
	}
	title := "it has no token"
	if end := a.Status.ExpirationTimestamp; end != nil && end.After(all.now) {
		title = "its token is not renewed, and ends " + end.UTC().Format(time.RFC3339)
	}
	return []Finding{failure(CodeAccountToken, title, fleet.OneLine(reported.Message), c.tokenFix(all, a, reported.Message))}
}

// unserved returns the finding for a ManagedServiceAccount that no agent serves, or not wholly.
func (c *checking) unserved(a *authenticationv1beta1.ManagedServiceAccount, s *metav1.Condition) Finding {
	f := failure(CodeAccountServed, "no agent serves it", fleet.OneLine(s.Message), nil)
	switch s.Reason {
	case authenticationv1beta1.ReasonNoManagedCluster:
		f.Fix = naming.ListClusters.On(c.o.Hub)
	case authenticationv1beta1.ReasonAddOnMissing:
		f.Fix = EnableAddOn.On(c.o.Hub, "addon", authenticationv1beta1.AddOnName, "cluster", a.Namespace)
	case authenticationv1beta1.ReasonLifetimeNotEnabled:
		f.Severity, f.Title, f.Fix = SeverityWarning, "its limited life is not honoured", work.OpenGate.On(c.o.Hub, "gate", gateLifetime)
	default:
		f.Fix = fleet.ShowAddOn.On(c.o.Hub, "addon", authenticationv1beta1.AddOnName, "cluster", a.Namespace)
	}
	return f
}

// foreignAccount recognizes the agent's report about an account that it did not create. What a cluster
// reports is no command to type: only the names are taken, and only if they are names.
var foreignAccount = regexp.MustCompile(`^ServiceAccount ([a-z0-9][-a-z0-9]*)/([a-z0-9][-.a-z0-9]*) of the cluster was not created for a ManagedServiceAccount`)

// tokenFix returns what lets the agent go on.
func (c *checking) tokenFix(all *identityFleet, a *authenticationv1beta1.ManagedServiceAccount, message string) fleet.Fix {
	if created := falseIn(a.Status.Conditions, authenticationv1beta1.ConditionSecretCreated); created != nil &&
		created.Reason == authenticationv1beta1.ReasonSecretNameTaken {
		return DropSecret.On(c.o.Hub, "secret", a.Name, "namespace", a.Namespace)
	}
	if of := foreignAccount.FindStringSubmatch(message); of != nil && of[2] == a.Name {
		return AllowAccount.With("namespace", of[1], "account", of[2], "annotation", authenticationv1beta1.AnnotationTokensAllowed,
			"context", all.contexts[a.Namespace], "cluster", a.Namespace)
	}
	if v := a.Spec.Rotation.Validity.Duration; v < 10*time.Minute || v > (1<<32)*time.Second {
		return SetValidity.On(c.o.Hub, "name", a.Name, "namespace", a.Namespace)
	}
	return fleet.ShowAddOn.On(c.o.Hub, "addon", authenticationv1beta1.AddOnName, "cluster", a.Namespace)
}

// permission returns what of a ClusterPermission its cluster does not have.
func (c *checking) permission(all *identityFleet, p *permissionv1alpha1.ClusterPermission) []Finding {
	if p.DeletionTimestamp != nil {
		return nil
	}
	edit := EditObject.On(c.o.Hub, "resource", "clusterpermission", "name", p.Name, "namespace", p.Namespace)
	applied := apimeta.FindStatusCondition(p.Status.Conditions, permissionv1alpha1.ConditionApplied)
	if v := falseIn(p.Status.Conditions, permissionv1alpha1.ConditionValidation); v != nil {
		f := failure(CodePermissionSpec, "nothing of it is sent", fleet.OneLine(v.Message), edit)
		if v.Reason == permissionv1alpha1.ReasonNoCluster {
			f.Fix = naming.ListClusters.On(c.o.Hub)
		}
		return []Finding{f}
	}
	switch {
	case applied == nil && all.now.Sub(p.CreationTimestamp.Time) >= stepPatience:
		return []Finding{warning(CodePermissionSpec, "the hub has not looked at it", "it has no condition "+permissionv1alpha1.ConditionApplied,
			work.OpenGate.On(c.o.Hub, "gate", "ClusterPermission"))}
	case applied != nil && applied.Status != metav1.ConditionTrue && applied.Reason == permissionv1alpha1.ReasonBuildFailed:
		return []Finding{failure(CodePermissionSpec, "it cannot be sent as it is", fleet.OneLine(applied.Message), edit)}
	}
	out := c.refused(all, p, applied)
	for _, kind := range []string{permissionv1alpha1.ConditionValidateRolesExist, permissionv1alpha1.ConditionValidateClusterRolesExist} {
		if missing := falseIn(p.Status.Conditions, kind); missing != nil {
			out = append(out, warning(CodePermissionRoles, "it binds roles that the cluster does not have", fleet.OneLine(missing.Message), edit))
		}
	}
	return out
}

// refused returns the finding for a ClusterPermission whose objects are not all on the cluster. What an agent
// says of them it also says of other works, so that the same words lead to the same fix.
func (c *checking) refused(all *identityFleet, p *permissionv1alpha1.ClusterPermission, applied *metav1.Condition) []Finding {
	if applied == nil || applied.Status == metav1.ConditionTrue {
		return nil
	}
	r := resourcesOf(p.Status.ResourceStatus)
	if r.failed == 0 {
		if all.now.Sub(applied.LastTransitionTime.Time) < stepPatience {
			return nil // it is on its way
		}
		return []Finding{warning(CodePermissionRefused, "the agent of the cluster has not answered", fleet.OneLine(applied.Message),
			CheckCluster.On(c.o.Hub, "cluster", p.Namespace))}
	}
	f := failure(CodePermissionRefused, fmt.Sprintf("the cluster refuses %d of its %d objects", r.failed, r.all), fleet.OneLine(r.message),
		EditObject.On(c.o.Hub, "resource", "clusterpermission", "name", p.Name, "namespace", p.Namespace))
	b := &brokenWork{Info: &work.Info{Name: p.Name, Cluster: p.Namespace, Owner: "clusterpermission", Message: r.message}, work: &workv1.ManifestWork{},
		context: all.contexts[p.Namespace]}
	if strings.Contains(r.message, "cannot change roleRef") {
		f.Fix = DropBinding.With("kind", r.kind, "name", r.name, "namespace", r.namespace, "context", b.context, "cluster", b.Cluster)
	} else if known, ok := c.faultOf(b); ok {
		if fix, isRemedy := known.Fix.(fleet.Remedy); isRemedy && fix.Code != ShowTree {
			f.Fix = fix
		}
	}
	return []Finding{f}
}

// resources counts the objects of a ClusterPermission and those that are not applied, and names the first of these.
type resources struct {
	all, failed                    int
	kind, namespace, name, message string
}

func (r *resources) count(kind, namespace, name string, conditions []metav1.Condition) {
	r.all++
	c := falseIn(conditions, permissionv1alpha1.ConditionResourceApplied)
	if c == nil || c.Reason != permissionv1alpha1.ReasonManifestFailed {
		return
	}
	if r.failed++; r.failed == 1 {
		r.kind, r.namespace, r.name, r.message = kind, namespace, name, c.Message
	}
}

func resourcesOf(s *permissionv1alpha1.ResourceStatus) (r resources) {
	if s == nil {
		return r
	}
	for _, o := range s.ClusterRoles {
		r.count("clusterrole", "", o.Name, o.Conditions)
	}
	for _, o := range s.ClusterRoleBindings {
		r.count("clusterrolebinding", "", o.Name, o.Conditions)
	}
	for _, o := range s.Roles {
		r.count("role", o.Namespace, o.Name, o.Conditions)
	}
	for _, o := range s.RoleBindings {
		r.count("rolebinding", o.Namespace, o.Name, o.Conditions)
	}
	return r
}

// falseIn returns a condition if it is there and False.
func falseIn(conditions []metav1.Condition, kind string) *metav1.Condition {
	if c := apimeta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
		return c
	}
	return nil
}
