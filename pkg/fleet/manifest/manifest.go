// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// maxWork bounds the manifests of one work together, in bytes of JSON. The webhook of the hub
// refuses more.
const maxWork = 500 << 10

// maxDocument bounds one YAML document, in bytes.
const maxDocument = 4 << 20

// Source is a named text with manifests: a file or standard input.
type Source struct {
	Name string
	Data []byte
}

// Read reads the objects of YAML or JSON texts and checks them as the hub's admission will,
// without a request to it. Lists are expanded. Objects of known namespaced kinds without a
// namespace get the given one; when that is empty they are an error.
func Read(sources []Source, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	where := map[string]string{}
	for _, s := range sources {
		objects, err := s.Objects()
		if err != nil {
			return nil, err
		}
		for i, u := range objects {
			place := s.Name
			if len(objects) > 1 {
				place = fmt.Sprintf("%s, object %d", s.Name, i+1)
			}
			if err := Check(u, place, namespace); err != nil {
				return nil, err
			}
			key := strings.Join([]string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}, "|")
			if first, ok := where[key]; ok {
				return nil, fleet.Misuse(fmt.Sprintf("%s: %s appears twice", place, fleet.Describe(u)), "it is in "+first+" too",
					fleet.Advice("leave one of them out"))
			}
			where[key] = place
			out = append(out, u)
		}
	}
	if len(out) == 0 {
		return nil, fleet.Misuse("there are no manifests", "the input contains no Kubernetes object", NameFiles.With())
	}
	return out, checkSize(out)
}

// Objects reads the objects of one source.
func (s Source) Objects() ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReaderSize(bytes.NewReader(s.Data), 4096))
	var out []*unstructured.Unstructured
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fleet.Misuse(s.Name+" cannot be read", fleet.OneLine(err.Error()), fleet.Advice("give YAML or JSON manifests"))
		}
		if len(document) > maxDocument {
			return nil, fleet.Misuse(fmt.Sprintf("%s: document %d is larger than %d bytes", s.Name, n, maxDocument), "", fleet.Advice("give manifests"))
		}
		objects, err := s.document(document, n)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
}

func (s Source) document(document []byte, n int) ([]*unstructured.Unstructured, error) {
	if err := checkYAML(document); err != nil {
		return nil, fleet.Misuse(fmt.Sprintf("%s: document %d cannot be read", s.Name, n), fleet.OneLine(err.Error()), fleet.Advice("correct the file"))
	}
	raw, err := yaml.YAMLToJSONStrict(document)
	switch {
	case err != nil:
		return nil, fleet.Misuse(fmt.Sprintf("%s: document %d is not YAML", s.Name, n), fleet.OneLine(err.Error()), fleet.Advice("correct the file"))
	case string(raw) == "null":
		return nil, nil
	case raw[0] != '{':
		return nil, fleet.Misuse(fmt.Sprintf("%s: document %d is not a Kubernetes object", s.Name, n),
			"it is not a set of fields with apiVersion, kind and metadata", fleet.Advice("give manifests only"))
	case manifest.Depth(raw) > manifest.MaxDepth:
		return nil, fleet.Misuse(fmt.Sprintf("%s: document %d nests deeper than %d levels", s.Name, n, manifest.MaxDepth), "", fleet.Advice("flatten it"))
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, fleet.Misuse(fmt.Sprintf("%s: document %d is not a Kubernetes object", s.Name, n), "apiVersion and kind are needed",
			fleet.Advice("give manifests only"))
	}
	return flatten(u, s.Name)
}

// flatten expands a list of objects.
func flatten(u *unstructured.Unstructured, name string) ([]*unstructured.Unstructured, error) {
	if !u.IsList() {
		return []*unstructured.Unstructured{u}, nil
	}
	list, err := u.ToList()
	if err != nil {
		return nil, fleet.Misuse(name+": the list cannot be read", fleet.OneLine(err.Error()), fleet.Advice("give the objects one by one"))
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// Check checks one object.
func Check(u *unstructured.Unstructured, place, namespace string) error {
	if err := checkNames(u, place); err != nil {
		return err
	}
	switch {
	case u.GetAPIVersion() == "" || u.GetKind() == "":
		return fleet.Misuse(place+" is not a Kubernetes object", "apiVersion and kind are needed", fleet.Advice("give manifests only"))
	case u.GetGenerateName() != "":
		return fleet.Misuse(place+": "+u.GetKind()+" has metadata.generateName", "a work must find its objects again", fleet.Advice("give it metadata.name"))
	case u.GetName() == "":
		return fleet.Misuse(place+": "+u.GetKind()+" has no metadata.name", "a work must find its objects again", fleet.Advice("give it a name"))
	case u.GetNamespace() == "" && NamespacedKinds.Has(u.GroupVersionKind().GroupKind().String()):
		if namespace == "" {
			return fleet.Misuse(fmt.Sprintf("%s: %s %s has no namespace", place, u.GetKind(), u.GetName()), "objects of this kind are in a namespace",
				GiveNamespace.With())
		}
		u.SetNamespace(namespace)
	}
	if name := u.GetName(); strings.ContainsAny(name, "/%") || name == "." || name == ".." {
		return fleet.Misuse(fmt.Sprintf("%s: %s: %q cannot be a name", place, u.GetKind(), name), "an object name cannot be . or .., or contain / or %",
			fleet.Advice("correct metadata.name"))
	}
	if problems := validation.IsDNS1123Subdomain(u.GetNamespace()); u.GetNamespace() != "" && len(problems) > 0 {
		return fleet.Misuse(fmt.Sprintf("%s: %s %s: %q cannot be a namespace", place, u.GetKind(), u.GetName(), u.GetNamespace()), problems[0],
			fleet.Advice("correct metadata.namespace"))
	}
	return checkAsAgent(u, place)
}

// checkNames refuses names that YAML does not read as strings.
func checkNames(u *unstructured.Unstructured, place string) error {
	metadata, _ := u.Object["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace"} {
		if value := metadata[field]; value != nil {
			if _, text := value.(string); !text {
				return fleet.Misuse(fmt.Sprintf("%s: metadata.%s of %s is %v, which is not a string", place, field, u.GetKind(), value),
					"YAML reads n, y, no, yes, on and off as booleans, and digits as numbers", fleet.Advice("put the value in quotes"))
			}
		}
	}
	return nil
}

// checkAsAgent refuses what an agent would refuse.
func checkAsAgent(u *unstructured.Unstructured, place string) error {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return fleet.Misuse(place+": "+fleet.Describe(u)+" cannot be written as JSON", err.Error(), fleet.Advice("correct the manifest"))
	}
	var fault *manifest.Error
	if _, err := manifest.Decode(raw); errors.As(err, &fault) {
		return fleet.Misuse(strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", place, fleet.Describe(u), fault.Field), ": "), fault.Problem, fleet.Advice(fault.Fix))
	}
	return nil
}

// checkSize refuses more than fits in one work.
func checkSize(objects []*unstructured.Unstructured) error {
	total, biggest, at := 0, 0, ""
	for _, u := range objects {
		raw, _ := json.Marshal(u.Object) // Check has written it as JSON before
		if total += len(raw); len(raw) > biggest {
			biggest, at = len(raw), fleet.Describe(u)
		}
	}
	if total > maxWork {
		return fleet.Misuse(fmt.Sprintf("the manifests have %d bytes, a work holds %d", total, maxWork), fmt.Sprintf("the largest is %s with %d bytes", at, biggest),
			fleet.Advice("spread them over several works"))
	}
	return nil
}

// NamespacedKinds are the namespaced built-in kinds. For other kinds the cluster itself
// decides.
var NamespacedKinds = sets.New(
	"ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController",
	"ResourceQuota", "Secret", "Service", "ServiceAccount",
	"ControllerRevision.apps", "DaemonSet.apps", "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps",
	"HorizontalPodAutoscaler.autoscaling", "CronJob.batch", "Job.batch", "Lease.coordination.k8s.io", "EndpointSlice.discovery.k8s.io",
	"Ingress.networking.k8s.io", "NetworkPolicy.networking.k8s.io", "PodDisruptionBudget.policy",
	"Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io", "CSIStorageCapacity.storage.k8s.io",
)
