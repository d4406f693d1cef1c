// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// ofAgents are the definitions that an agent installs. They are apart, so that its program does
// not contain those of a hub: the linker leaves out what no function that is used reads.
//
//go:embed about.*.yaml cluster.*_clusterclaims.yaml work.*_appliedmanifestworks.yaml
var ofAgents embed.FS

//go:embed addon.*.yaml authentication.*.yaml multicluster.*.yaml operator.*.yaml
//go:embed cluster.*_addon*.yaml cluster.*_managed*.yaml cluster.*_placement*.yaml work.*_manifest*.yaml
var files embed.FS

// permissions is apart, too: the hub alone has them.
//
//go:embed rbac.open-cluster-management.io_clusterpermissions.yaml
var permissions []byte

// Names of definitions that callers need individually.
const (
	// ClusterManagers is applied by the installer of the hub, before anything else.
	ClusterManagers = "clustermanagers.operator.open-cluster-management.io"
	// Klusterlets is applied by the installer of the agent, before anything else.
	Klusterlets = "klusterlets.operator.open-cluster-management.io"
	// clusterManagementAddOns is served in two versions that differ.
	clusterManagementAddOns = "clustermanagementaddons.addon.open-cluster-management.io"
	// ManagedClusterAddOns is served in two versions that differ.
	ManagedClusterAddOns = "managedclusteraddons.addon.open-cluster-management.io"
	// ClusterProfiles is a third party's, in the form that the hub needs. It is in none of
	// the lists: it is created only on request and if it is missing.
	ClusterProfiles = "clusterprofiles.multicluster.x-k8s.io"
	// ManagedServiceAccounts is applied on request: charts of the add-on bring it, too.
	ManagedServiceAccounts = "managedserviceaccounts.authentication.open-cluster-management.io"
	// ClusterProperties is another one, which agents need.
	ClusterProperties = "clusterproperties.about.k8s.io"
	// ClusterPermissions is in none of the lists either: the hub applies it with its gate,
	// unless somebody else has installed it. Get does not know it, Any does.
	ClusterPermissions = "clusterpermissions.rbac.open-cluster-management.io"
)

// hubNames are the definitions of the hub in the order in which they are applied.
var hubNames = []string{
	clusterManagementAddOns,
	"managedclusters.cluster.open-cluster-management.io",
	"managedclustersets.cluster.open-cluster-management.io",
	"manifestworks.work.open-cluster-management.io",
	"manifestworkreplicasets.work.open-cluster-management.io",
	ManagedClusterAddOns,
	"managedclustersetbindings.cluster.open-cluster-management.io",
	"placements.cluster.open-cluster-management.io",
	"addondeploymentconfigs.addon.open-cluster-management.io",
	"addontemplates.addon.open-cluster-management.io",
	"placementdecisions.cluster.open-cluster-management.io",
	"addonplacementscores.cluster.open-cluster-management.io",
}

// agentNames are the definitions of a managed cluster.
var agentNames = []string{
	"appliedmanifestworks.work.open-cluster-management.io",
	"clusterclaims.cluster.open-cluster-management.io",
}

// Hub returns the twelve definitions of the hub in the order in which to apply them,
// without ClusterManagers, which is applied before the hub runs. The caller adds the
// conversion to those for which NeedsConversion returns true. Every call returns new
// objects. It fails only if an embedded file is broken.
func Hub() ([]*unstructured.Unstructured, error) {
	return all(files, hubNames)
}

// Agent returns the definitions of a managed cluster, without Klusterlets, which is applied
// before the agent runs. Every call returns new objects. It fails only if an embedded file
// is broken.
func Agent() ([]*unstructured.Unstructured, error) {
	return all(ofAgents, agentNames)
}

// Properties returns the definition of ClusterProperties as a new object. It fails only if the
// embedded file is broken.
func Properties() (*unstructured.Unstructured, error) {
	return get(ofAgents, ClusterProperties)
}

// Get returns the definition with that full name, such as
// managedclusters.cluster.open-cluster-management.io, as a new object. It fails if there is
// no definition of that name.
func Get(name string) (*unstructured.Unstructured, error) {
	if name == ClusterProperties || slices.Contains(agentNames, name) {
		return get(ofAgents, name)
	}
	return get(files, name)
}

func get(from embed.FS, name string) (*unstructured.Unstructured, error) {
	plural, group, _ := strings.Cut(name, ".")
	raw, err := from.ReadFile(group + "_" + plural + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("reading custom resource definition %s: %w", name, err)
	}
	return decode(name, raw)
}

// Any is Get for all definitions, that of ClusterPermissions included.
func Any(name string) (*unstructured.Unstructured, error) {
	if name == ClusterPermissions {
		return decode(name, permissions)
	}
	return Get(name)
}

func decode(name string, raw []byte) (*unstructured.Unstructured, error) {
	encoded, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("reading custom resource definition %s: %w", name, err)
	}
	definition := &unstructured.Unstructured{}
	if err := definition.UnmarshalJSON(encoded); err != nil {
		return nil, fmt.Errorf("reading custom resource definition %s: %w", name, err)
	}
	return definition, nil
}

// NeedsConversion reports whether the versions of a definition differ, so that it needs
// WithConversion before it is applied.
func NeedsConversion(name string) bool {
	return name == clusterManagementAddOns || name == ManagedClusterAddOns
}

// Conversion says where the API server finds the conversion webhook.
type Conversion struct {
	// URL is called instead of a Service, if it is set.
	URL *string
	// Namespace and Name are those of the Service.
	Namespace, Name string
	// Path is the path of the request, for example /convert.
	Path string
	// Port is that of the Service.
	Port int32
	// CABundle holds the PEM certificates that verify the webhook.
	CABundle []byte
}

// WithConversion returns a copy of a definition whose versions are converted by a webhook.
func WithConversion(definition *unstructured.Unstructured, c Conversion) *unstructured.Unstructured {
	converted := definition.DeepCopy()
	spec, ok := converted.Object["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
		converted.Object["spec"] = spec
	}
	client := map[string]any{"caBundle": base64.StdEncoding.EncodeToString(c.CABundle)}
	if c.URL != nil {
		client["url"] = *c.URL
	} else {
		client["service"] = map[string]any{"namespace": c.Namespace, "name": c.Name, "path": c.Path, "port": int64(c.Port)}
	}
	spec["conversion"] = map[string]any{
		"strategy": "Webhook",
		"webhook":  map[string]any{"clientConfig": client, "conversionReviewVersions": []any{"v1", "v1beta1"}},
	}
	return converted
}

func all(from embed.FS, names []string) ([]*unstructured.Unstructured, error) {
	definitions := make([]*unstructured.Unstructured, 0, len(names))
	for _, name := range names {
		definition, err := get(from, name)
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}
