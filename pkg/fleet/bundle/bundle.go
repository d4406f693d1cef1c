// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Limits of what is kept: of one kind, and of the whole archive before it is compressed.
const (
	maxOfKind = 4 << 20
	maxAll    = 48 << 20
)

// Options say what to write.
type Options struct {
	fleet.Common
	// Hub and Spoke are the clusters to read; one of them may be nil.
	Hub, Spoke *fleet.Cluster
	// Version is that of the program, Report what a check has found.
	Version string
	Report  any
}

// File is a file of the archive.
type File struct {
	Name string `json:"name"`
	// Objects are how many it has, Omitted how many more there are.
	Objects int `json:"objects,omitempty"`
	Omitted int `json:"omitted,omitempty"`
	// Failure is why it could not be read.
	Failure string `json:"error,omitempty"`
}

// source is a kind to read, in one namespace or everywhere.
type source struct {
	name string
	fleet.Query
}

var (
	hubKinds = []source{
		{"clustermanagers", fleet.Query{Resource: fleet.ClusterManagers}}, {"managedclusters", fleet.Query{Resource: fleet.ManagedClusters}},
		{"managedclustersets", fleet.Query{Resource: fleet.ManagedClusterSets}}, {"managedclustersetbindings", fleet.Query{Resource: fleet.SetBindings}},
		{"placements", fleet.Query{Resource: fleet.Placements}}, {"placementdecisions", fleet.Query{Resource: fleet.PlacementDecisions}},
		{"manifestworks", fleet.Query{Resource: fleet.ManifestWorks}}, {"manifestworkreplicasets", fleet.Query{Resource: fleet.ReplicaSets}},
		{"clustermanagementaddons", fleet.Query{Resource: fleet.ManagementAddOns}}, {"managedclusteraddons", fleet.Query{Resource: fleet.ClusterAddOns}},
		{"addontemplates", fleet.Query{Resource: fleet.AddOnTemplates}},
		{"addondeploymentconfigs", fleet.Query{Resource: addonv1alpha1.GroupVersion.WithResource("addondeploymentconfigs")}},
		{"certificatesigningrequests", fleet.Query{Resource: fleet.SigningRequests}},
		{"definitions", fleet.Query{Resource: fleet.Definitions}},
	}
	spokeKinds = []source{
		{"klusterlets", fleet.Query{Resource: fleet.Klusterlets}}, {"appliedmanifestworks", fleet.Query{Resource: fleet.AppliedManifestWorks}},
	}
	// running are read in each namespace of the installation.
	running = []source{
		{"deployments", fleet.Query{Resource: fleet.Deployments}}, {"pods", fleet.Query{Resource: fleet.Pods}},
		{"events", fleet.Query{Resource: fleet.Events}}, {"leases", fleet.Query{Resource: fleet.Leases}},
	}
)

// Write writes the archive and returns what is in it. A kind that cannot be read is noted there.
func Write(ctx context.Context, w io.Writer, o Options) ([]File, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	zipped := gzip.NewWriter(w)
	b := &writer{tar: tar.NewWriter(zipped), now: r.Now()}
	versions := "kubectl-ocm: " + o.Version + "\n"
	if o.Hub != nil {
		versions += b.cluster(ctx, "hub", o.Hub, hubKinds, operatorv1.NamespaceOperator, operatorv1.NamespaceHub)
	}
	if o.Spoke != nil {
		versions += b.cluster(ctx, "spoke", o.Spoke, spokeKinds, operatorv1.NamespaceAgent, operatorv1.NamespaceAgentAddOn)
	}
	b.add(File{Name: "versions.yaml"}, []byte(versions))
	findings, err := report(o.Report)
	if err != nil {
		return nil, err
	}
	b.add(File{Name: "findings.yaml"}, findings)
	slices.SortFunc(b.files, func(x, y File) int { return cmp.Compare(x.Name, y.Name) })
	if list, err := yaml.Marshal(b.files); err == nil {
		b.add(File{Name: "contents.yaml"}, list)
	}
	return b.files, errors.Join(ctx.Err(), b.err, b.tar.Close(), zipped.Close())
}

// report returns what was found, as YAML.
func report(found any) ([]byte, error) {
	raw, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("encoding findings: %w", err)
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, fmt.Errorf("decoding findings: %w", err)
	}
	return yaml.Marshal(clean(plain, "", ""))
}

// writer writes one archive. After its first error it does nothing.
type writer struct {
	tar   *tar.Writer
	now   time.Time
	size  int
	files []File
	err   error
}

func (b *writer) add(f File, content []byte) {
	b.files = append(b.files, f)
	if b.err != nil {
		return
	}
	head := &tar.Header{Name: f.Name, Mode: 0o600, Size: int64(len(content)), ModTime: b.now, Typeflag: tar.TypeReg}
	if b.err = b.tar.WriteHeader(head); b.err == nil {
		_, b.err = b.tar.Write(content)
	}
	b.size += len(content)
}

// cluster adds what is on one cluster and returns its version.
func (b *writer) cluster(ctx context.Context, side string, c *fleet.Cluster, kinds []source, namespaces ...string) string {
	for _, s := range kinds {
		b.list(ctx, side+"/"+s.name, c, s.Query)
	}
	for _, namespace := range namespaces {
		for _, s := range running {
			s.Namespace = namespace
			b.list(ctx, side+"/"+namespace+"/"+s.name, c, s.Query)
		}
	}
	version, err := fleet.ServerVersion(ctx, c)
	if err != nil {
		version = Scrub(fleet.OneLine(err.Error()))
	}
	return fmt.Sprintf("%s: %q\n", side, version)
}

// list adds the objects of one query, as far as there is room.
func (b *writer) list(ctx context.Context, name string, c *fleet.Cluster, q fleet.Query) {
	f := File{Name: name + ".yaml"}
	items, err := fleet.ListAll(ctx, c, q)
	if err != nil {
		f.Failure = Scrub(fleet.OneLine(err.Error()))
	}
	var out bytes.Buffer
	for i := range items {
		if !isOurs(&items[i]) {
			continue
		}
		text, err := yaml.Marshal(redacted(&items[i]))
		if err != nil || out.Len()+len(text) > maxOfKind || b.size+out.Len()+len(text) > maxAll {
			f.Omitted++
			continue
		}
		f.Objects++
		out.WriteString("---\n")
		out.Write(text)
	}
	b.add(f, out.Bytes())
}

// isOurs leaves out the definitions of others.
func isOurs(u *unstructured.Unstructured) bool {
	return u.GetKind() != "CustomResourceDefinition" || isOfHub(u)
}
