// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
)

// Read reads the one placement of a text, and checks it as the hub's admission does. One
// without a namespace gets the given one. Fields that a placement does not have are an error,
// because they would be ignored.
func Read(s manifest.Source, namespace string) (*clusterv1beta1.Placement, error) {
	found, err := decodeAll[clusterv1beta1.Placement](s, clusterv1beta1.GroupVersion.String(), "Placement")
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fleet.Misuse(fmt.Sprintf("%s holds %s", s.Name, fleet.Many(len(found), "placement")), "one is decided at a time",
			fleet.Advice("give a file with one placement"))
	}
	p := found[0]
	if p.Namespace == "" {
		p.Namespace = namespace
	}
	if _, err := ParseName(p.Namespace+"/"+p.Name, ""); err != nil {
		return nil, err
	}
	return p, checkPlacement(p, nil)
}

// ReadClusters reads managed clusters from texts, for a what-if.
func ReadClusters(sources []manifest.Source) ([]*clusterv1.ManagedCluster, error) {
	var out []*clusterv1.ManagedCluster
	for _, s := range sources {
		found, err := decodeAll[clusterv1.ManagedCluster](s, clusterv1.GroupVersion.String(), "ManagedCluster")
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fleet.Misuse(s.Name+" contains no managed cluster", "", ExampleCluster.With())
		}
		for _, c := range found {
			if err := naming.Check(c.Name); err != nil {
				return nil, err
			}
		}
		out = append(out, found...)
	}
	return out, nil
}

// decodeAll reads objects of one kind and rejects unknown fields.
func decodeAll[T any](s manifest.Source, version, kind string) ([]*T, error) {
	objects, err := s.Objects()
	if err != nil {
		return nil, err
	}
	var out []*T
	for _, u := range objects {
		if u.GetAPIVersion() != version || u.GetKind() != kind {
			return nil, fleet.Misuse(fmt.Sprintf("%s holds a %s of %s", s.Name, u.GetKind(), u.GetAPIVersion()), "a "+kind+" of "+version+" is needed",
				fleet.Advice("leave it out"))
		}
		object := new(T)
		raw, err := json.Marshal(u.Object)
		if err == nil {
			err = json.Unmarshal(raw, object) // names a field of a wrong type
		}
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, new(T), true) // names fields that it does not have
		}
		if err != nil {
			return nil, fleet.Misuse(fmt.Sprintf("%s: %s is not a %s", s.Name, fleet.Describe(u), kind), fleet.OneLine(err.Error()),
				CorrectField.With("kind", strings.ToLower(kind)))
		}
		out = append(out, object)
	}
	return out, nil
}
