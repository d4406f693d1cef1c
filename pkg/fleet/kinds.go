// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GetOptions are the options of plain reads.
var GetOptions = metav1.GetOptions{}

// aggregated is the media type for all kinds of an API server in one document.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// Namespaced lists every namespaced resource that can be listed, each at its preferred
// version. A group whose server does not answer is an error, because it might have any
// objects.
func (c *Cluster) Namespaced(ctx context.Context) ([]schema.GroupVersionResource, error) {
	var out []schema.GroupVersionResource
	for _, path := range []string{"/api", "/apis"} {
		raw, err := c.raw.Get().AbsPath(path).SetHeader("Accept", aggregated).Do(ctx).Raw()
		if err != nil {
			return nil, fmt.Errorf("reading the kinds of %s: %w", c, err)
		}
		found, err := parseKinds(raw)
		if err != nil {
			return nil, fmt.Errorf("reading the kinds of %s: %w", c, err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// kindsDocument is the part of APIGroupDiscoveryList that is read.
type kindsDocument struct {
	Kind  string
	Items []struct {
		Metadata struct{ Name string }
		Versions []struct {
			Version   string
			Freshness string
			Resources []struct {
				Resource, Scope string
				Verbs           []string
			}
		}
	}
}

func parseKinds(raw []byte) ([]schema.GroupVersionResource, error) {
	var document kindsDocument
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	if document.Kind != "APIGroupDiscoveryList" {
		return nil, fmt.Errorf("it answers with %q instead of one list", document.Kind)
	}
	var out []schema.GroupVersionResource
	for _, group := range document.Items {
		seen := map[string]bool{}
		for _, version := range group.Versions {
			if version.Freshness == "Stale" {
				return nil, fmt.Errorf("the server of group %s does not answer", group.Metadata.Name)
			}
			for _, r := range version.Resources {
				if r.Scope == "Namespaced" && slices.Contains(r.Verbs, "list") && !seen[r.Resource] {
					seen[r.Resource] = true
					out = append(out, schema.GroupVersionResource{Group: group.Metadata.Name, Version: version.Version, Resource: r.Resource})
				}
			}
		}
	}
	return out, nil
}
