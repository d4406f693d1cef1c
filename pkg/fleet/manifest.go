// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/manifest"
)

// MaxManifests is the largest sum of the manifests of one work, in bytes of
// JSON (work.md 11).
const MaxManifests = 500 << 10

// maxDocument bounds one YAML document that is read, in bytes.
const maxDocument = 4 << 20

// Source is a named text with manifests: a file or standard input.
type Source struct {
	Name string
	Data []byte
}

// ReadManifests reads the objects of YAML or JSON texts and judges them as the
// hub's admission will, without asking it. Lists are taken apart. Objects of
// known namespaced kinds without a namespace get the given one; where none is
// given that is an error.
func ReadManifests(sources []Source, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	where := map[string]string{}
	for _, s := range sources {
		objects, err := s.objects()
		if err != nil {
			return nil, err
		}
		for i, u := range objects {
			place := s.Name
			if len(objects) > 1 {
				place = fmt.Sprintf("%s, object %d", s.Name, i+1)
			}
			if err := checkManifest(u, place, namespace); err != nil {
				return nil, err
			}
			key := strings.Join([]string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}, "|")
			if first, ok := where[key]; ok {
				return nil, usage(fmt.Sprintf("%s: %s is there twice", place, describe(u)), "it is in "+first+" too", "leave one of them out")
			}
			where[key] = place
			out = append(out, u)
		}
	}
	if len(out) == 0 {
		return nil, usage("there are no manifests", "what was read holds no Kubernetes object", "name files or folders with manifests by -f")
	}
	return out, checkSize(out)
}

// objects reads the objects of one source.
func (s Source) objects() ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReaderSize(bytes.NewReader(s.Data), 4096))
	var out []*unstructured.Unstructured
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, usage(s.Name+" cannot be read", oneLine(err.Error()), "give YAML or JSON manifests")
		}
		if len(document) > maxDocument {
			return nil, usage(fmt.Sprintf("%s: document %d is larger than %d bytes", s.Name, n, maxDocument), "", "give manifests")
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
		return nil, usage(fmt.Sprintf("%s: document %d cannot be read", s.Name, n), oneLine(err.Error()), "correct the file")
	}
	var content any
	if err := yaml.UnmarshalStrict(document, &content); err != nil {
		return nil, usage(fmt.Sprintf("%s: document %d is no YAML", s.Name, n), oneLine(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")), "correct the file")
	}
	if content == nil {
		return nil, nil
	}
	object, ok := content.(map[string]any)
	if !ok {
		return nil, usage(fmt.Sprintf("%s: document %d is no Kubernetes object", s.Name, n), "it is not a set of fields with apiVersion, kind and metadata", "give manifests only")
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, usage(fmt.Sprintf("%s: document %d cannot be written as JSON", s.Name, n), err.Error(), "correct the file")
	}
	if manifest.Depth(raw) > manifest.MaxDepth {
		return nil, usage(fmt.Sprintf("%s: document %d nests deeper than %d levels", s.Name, n, manifest.MaxDepth), "", "flatten it")
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, usage(fmt.Sprintf("%s: document %d is no Kubernetes object", s.Name, n), "apiVersion and kind are needed", "give manifests only")
	}
	return flatten(u, s.Name)
}

// flatten takes a list of objects apart.
func flatten(u *unstructured.Unstructured, name string) ([]*unstructured.Unstructured, error) {
	if !u.IsList() {
		return []*unstructured.Unstructured{u}, nil
	}
	list, err := u.ToList()
	if err != nil {
		return nil, usage(name+": the list cannot be read", oneLine(err.Error()), "give the objects one by one")
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// checkManifest judges one object.
func checkManifest(u *unstructured.Unstructured, place, namespace string) error {
	if err := checkWords(u, place); err != nil {
		return err
	}
	switch {
	case u.GetAPIVersion() == "" || u.GetKind() == "":
		return usage(place+" is no Kubernetes object", "apiVersion and kind are needed", "give manifests only")
	case u.GetGenerateName() != "":
		return usage(place+": "+u.GetKind()+" has metadata.generateName", "a work must find its objects again", "give it metadata.name")
	case u.GetName() == "":
		return usage(place+": "+u.GetKind()+" has no metadata.name", "a work must find its objects again", "give it a name")
	case u.GetNamespace() == "" && namespacedKinds[u.GroupVersionKind().GroupKind().String()]:
		if namespace == "" {
			return usage(fmt.Sprintf("%s: %s %s has no namespace", place, u.GetKind(), u.GetName()), "objects of this kind are in a namespace", "give it metadata.namespace, or one for all by -n")
		}
		u.SetNamespace(namespace)
	}
	if name := u.GetName(); strings.ContainsAny(name, "/%") || name == "." || name == ".." {
		return usage(fmt.Sprintf("%s: %s: %q cannot be a name", place, u.GetKind(), name), "no name of an object is . or .. or holds / or %", "correct metadata.name")
	}
	if problems := validation.IsDNS1123Subdomain(u.GetNamespace()); u.GetNamespace() != "" && len(problems) > 0 {
		return usage(fmt.Sprintf("%s: %s %s: %q cannot be a namespace", place, u.GetKind(), u.GetName(), u.GetNamespace()), problems[0], "correct metadata.namespace")
	}
	return asAgent(u, place)
}

// checkWords refuses names that YAML does not read as text.
func checkWords(u *unstructured.Unstructured, place string) error {
	metadata, _ := u.Object["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace"} {
		if value := metadata[field]; value != nil {
			if _, text := value.(string); !text {
				return usage(fmt.Sprintf("%s: metadata.%s of %s is %v, which is no text", place, field, u.GetKind(), value), "YAML takes n, y, no, yes, on and off for truth values, and digits for numbers", "put the value in quotes")
			}
		}
	}
	return nil
}

// asAgent refuses what an agent would.
func asAgent(u *unstructured.Unstructured, place string) error {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return usage(place+": "+describe(u)+" cannot be written as JSON", err.Error(), "correct the manifest")
	}
	var fault *manifest.Error
	if _, err := manifest.Decode(raw); errors.As(err, &fault) {
		return usage(strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", place, describe(u), fault.Field), ": "), fault.Problem, fault.Fix)
	}
	return nil
}

// checkSize refuses more than one work can hold.
func checkSize(objects []*unstructured.Unstructured) error {
	total, biggest, at := 0, 0, ""
	for _, u := range objects {
		raw, err := json.Marshal(u.Object)
		if err != nil {
			return usage(describe(u)+" cannot be written as JSON", err.Error(), "correct the manifest")
		}
		if total += len(raw); len(raw) > biggest {
			biggest, at = len(raw), describe(u)
		}
	}
	if total > MaxManifests {
		return usage(fmt.Sprintf("the manifests have %d bytes, a work holds %d", total, MaxManifests), fmt.Sprintf("the largest is %s with %d bytes", at, biggest), "spread them over several works")
	}
	return nil
}

// namespacedKinds are the built-in kinds that are in a namespace. Of others it
// is not known here; the cluster itself will tell.
var namespacedKinds = kinds(
	"ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController",
	"ResourceQuota", "Secret", "Service", "ServiceAccount",
	"ControllerRevision.apps", "DaemonSet.apps", "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps",
	"HorizontalPodAutoscaler.autoscaling", "CronJob.batch", "Job.batch", "Lease.coordination.k8s.io", "EndpointSlice.discovery.k8s.io",
	"Ingress.networking.k8s.io", "NetworkPolicy.networking.k8s.io", "PodDisruptionBudget.policy",
	"Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io", "CSIStorageCapacity.storage.k8s.io",
)

func kinds(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}
