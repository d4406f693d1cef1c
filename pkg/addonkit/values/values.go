// SPDX-License-Identifier: Apache-2.0

package values

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Names of the values that are always known; nothing overrides them.
const (
	// ClusterName is the name of the managed cluster.
	ClusterName = "ClusterName"
	// AddonName is the name of the add-on.
	AddonName = "AddonName"
	// AddonInstallNamespace is where the agent and its credentials are.
	AddonInstallNamespace = "AddonInstallNamespace"
	// InstallMode is ModeDefault or ModeHosted.
	InstallMode = "InstallMode"
)

// Values of InstallMode.
const (
	ModeDefault = "Default"
	ModeHosted  = "Hosted"
)

// Names of the values that have a default.
const (
	// HubKubeConfigSecret is the secret with the access to the hub.
	HubKubeConfigSecret = "HubKubeConfigSecret"
	// ManagedKubeConfigSecret is the secret with which a hosted agent reaches the managed
	// cluster; the user supplies it.
	ManagedKubeConfigSecret = "ManagedKubeConfigSecret"
)

// managedKubeconfigSuffix follows the name of the add-on in the name of the secret that
// users supply.
const managedKubeconfigSuffix = "-managed-kubeconfig"

// Func returns values for an instance. The result must not be changed.
type Func func(ctx context.Context, i addonkit.Instance) (map[string]any, error)

// Merge merges values, later ones overriding earlier ones. Maps are merged key by key,
// everything else is replaced; the arguments are not changed.
func Merge(list ...map[string]any) map[string]any {
	out := map[string]any{}
	for _, values := range list {
		for key, value := range values {
			before, both := out[key].(map[string]any)
			now, isMap := value.(map[string]any)
			switch {
			case both && isMap:
				out[key] = Merge(before, now)
			case isMap:
				out[key] = Merge(now)
			default:
				out[key] = value
			}
		}
	}
	return out
}

// Defaults returns the values that any other value overrides.
func Defaults(i addonkit.Instance) map[string]any {
	return map[string]any{
		HubKubeConfigSecret:     i.AddOn.Name + addonv1alpha1.SecretSuffixHubKubeconfig,
		ManagedKubeConfigSecret: i.AddOn.Name + managedKubeconfigSuffix,
	}
}

// BuiltIn returns the values that are always known, for an agent in a namespace, on the
// managed cluster or on a hosting one.
func BuiltIn(i addonkit.Instance, namespace string, hosted bool) map[string]any {
	mode := ModeDefault
	if hosted {
		mode = ModeHosted
	}
	return map[string]any{ClusterName: i.AddOn.Namespace, AddonName: i.AddOn.Name, AddonInstallNamespace: namespace, InstallMode: mode}
}

// Place returns where the agent of an instance and its credentials are, and whether that is
// on a hosting cluster. namespace and host are the author's, or nil.
func Place(ctx context.Context, i addonkit.Instance, namespace func(
	context.Context, addonkit.Instance,
) (string, error), host addonkit.Hosted) (in string, hosted bool, err error) {
	own := ""
	if namespace != nil {
		if own, err = namespace(ctx, i); err != nil {
			return "", false, err
		}
	}
	if host != nil {
		_, hosted = host.HostingCluster(i)
	}
	return registration.InstallNamespace(i.AddOn, own), hosted, nil
}

// All calls the functions in turn and merges their values, later ones overriding earlier
// ones, between defaults and built-in values, usually Defaults and BuiltIn. It stops at the
// first error.
func All(ctx context.Context, i addonkit.Instance, defaults, builtIn map[string]any, funcs ...Func) (map[string]any, error) {
	list := []map[string]any{defaults}
	for _, f := range funcs {
		values, err := f(ctx, i)
		if err != nil {
			return nil, err
		}
		list = append(list, values)
	}
	out := Merge(list...)
	// Not merged: a map would keep what a user added.
	maps.Copy(out, builtIn)
	return out, nil
}

// Fixed returns a Func with the same values for every instance.
func Fixed(values map[string]any) Func {
	return func(context.Context, addonkit.Instance) (map[string]any, error) { return values, nil }
}

// Annotation is a Func for the annotation "values" of the instance, which holds a JSON
// object.
func Annotation(_ context.Context, i addonkit.Instance) (map[string]any, error) {
	text := i.AddOn.Annotations[addonv1alpha1.AnnotationValues]
	if text == "" {
		return nil, nil
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf(`ManagedClusterAddOn %s/%s: metadata.annotations[%s]: is no JSON object; write for example {"Key":"value"}`,
			i.AddOn.Namespace, i.AddOn.Name, addonv1alpha1.AnnotationValues)
	}
	return out, nil
}

// at nests a value at a dotted path.
func at(path string, value any) map[string]any {
	first, rest, nested := strings.Cut(path, ".")
	if nested {
		value = at(rest, value)
	}
	return map[string]any{first: value}
}
