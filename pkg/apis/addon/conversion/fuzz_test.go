// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	addonv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/conversion"
)

// rounds is how many random objects each kind and version is tried with.
const rounds = 500

// filler makes random objects that a server could hold, with the names that the
// rules know turning up often.
func filler(seed int64) *randfill.Filler {
	pick := func(c randfill.Continue, from ...string) string { return from[c.Intn(len(from))] }
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).Funcs(
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&m.Name)
			c.Fill(&m.Labels)
			c.Fill(&m.Annotations)
			if c.Intn(3) == 0 {
				metav1.SetMetaDataAnnotation(m, addonv1alpha1.AnnotationInstallNamespace, pick(c, "", "n1", "n2"))
			}
		},
		func(s *addonv1alpha1.ManagedClusterAddOnSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.InstallNamespace = pick(c, "", "n1", "n2")
		},
		func(r *addonv1alpha1.RegistrationConfig, c randfill.Continue) {
			c.FillNoCustom(r)
			r.SignerName = pick(c, "", addonv1alpha1.KubeAPIServerSigner, "a.b/c")
		},
		func(r *addonv1beta1.RegistrationConfig, c randfill.Continue) {
			c.FillNoCustom(r)
			r.Type = addonv1beta1.RegistrationType(pick(c, "kubeClient", "customSigner"))
		},
		func(s *addonv1beta1.CustomSignerConfig, c randfill.Continue) {
			c.FillNoCustom(s)
			s.SignerName = pick(c, "", addonv1alpha1.KubeAPIServerSigner, "a.b/c")
		},
		func(d *addonv1alpha1.DriverType, c randfill.Continue) {
			*d = addonv1alpha1.DriverType(pick(c, "", "csr", "token"))
		},
		func(r *addonv1alpha1.ConfigReferent, c randfill.Continue) {
			r.Namespace = pick(c, "", "n1", "n2")
			r.Name = pick(c, "", "a", "b", addonv1alpha1.ReservedNoDefault)
		},
		func(when *metav1.Time, c randfill.Continue) { *when = metav1.Unix(int64(c.Int31()), 0) },
		func(d *metav1.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Int31()) },
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromString("10%"); c.Bool() {
				*v = intstr.FromInt32(c.Int31())
			}
		},
	)
}

// threeAsOne converts three times, checks that it gives what one conversion
// gives, and returns the object there and back again.
func threeAsOne(t *testing.T, raw []byte) []byte {
	t.Helper()
	there, back := newer, older
	var meta metav1.TypeMeta
	require.NoError(t, json.Unmarshal(raw, &meta))
	if meta.APIVersion == newer {
		there, back = older, newer
	}
	once, err := conversion.Convert(raw, there)
	require.NoError(t, err)
	twice, err := conversion.Convert(once, back)
	require.NoError(t, err)
	thrice, err := conversion.Convert(twice, there)
	require.NoError(t, err)
	require.JSONEq(t, string(once), string(thrice), "of %s", raw)
	return twice
}

// subjects are the kinds and versions, each with what a way there and back loses.
func subjects() map[string]struct {
	empty func() runtime.Object
	lose  func(runtime.Object)
} {
	return map[string]struct {
		empty func() runtime.Object
		lose  func(runtime.Object)
	}{
		"ManagedClusterAddOn v1alpha1": {
			func() runtime.Object { return &addonv1alpha1.ManagedClusterAddOn{} },
			func(o runtime.Object) { loseOlderManaged(o.(*addonv1alpha1.ManagedClusterAddOn)) },
		},
		"ManagedClusterAddOn v1beta1": {
			func() runtime.Object { return &addonv1beta1.ManagedClusterAddOn{} },
			func(o runtime.Object) { loseNewerManaged(o.(*addonv1beta1.ManagedClusterAddOn)) },
		},
		"ClusterManagementAddOn v1alpha1": {
			func() runtime.Object { return &addonv1alpha1.ClusterManagementAddOn{} },
			func(o runtime.Object) { loseOlderManagement(o.(*addonv1alpha1.ClusterManagementAddOn)) },
		},
		"ClusterManagementAddOn v1beta1": {
			func() runtime.Object { return &addonv1beta1.ClusterManagementAddOn{} },
			func(o runtime.Object) { loseNewerManagement(o.(*addonv1beta1.ClusterManagementAddOn)) },
		},
	}
}

func TestNothingElseIsLost(t *testing.T) {
	for name, subject := range subjects() {
		t.Run(name, func(t *testing.T) {
			random := filler(20261121)
			kind, version, _ := strings.Cut(name, " ")
			gvk := schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: version, Kind: kind}
			for range rounds {
				object := subject.empty()
				random.Fill(object)
				object.GetObjectKind().SetGroupVersionKind(gvk)
				raw, err := json.Marshal(object)
				require.NoError(t, err)

				back := subject.empty()
				require.NoError(t, json.Unmarshal(threeAsOne(t, raw), back))

				want := subject.empty()
				require.NoError(t, json.Unmarshal(raw, want))
				subject.lose(want)
				require.Empty(t, cmp.Diff(want, back, cmpopts.EquateEmpty()), "of %s", raw)
			}
		})
	}
}

func loseOlderManaged(o *addonv1alpha1.ManagedClusterAddOn) {
	if namespace, found := o.Annotations[addonv1alpha1.AnnotationInstallNamespace]; found {
		delete(o.Annotations, addonv1alpha1.AnnotationInstallNamespace)
		if o.Spec.InstallNamespace == "" {
			o.Spec.InstallNamespace = namespace
		}
	}
	o.Status.AddOnConfiguration = addonv1alpha1.AddOnConfigCoordinates{}
	for i := range o.Status.ConfigReferences {
		reference := &o.Status.ConfigReferences[i]
		reference.ConfigReferent = addonv1alpha1.ConfigReferent{}
		if reference.DesiredConfig != nil {
			reference.ConfigReferent = reference.DesiredConfig.ConfigReferent
		}
	}
	clients := 0
	for i := range o.Status.Registrations {
		if registration := &o.Status.Registrations[i]; registration.SignerName == addonv1alpha1.KubeAPIServerSigner {
			registration.Subject.OrganizationUnits = nil
			clients++
		}
	}
	if clients == 0 {
		o.Status.KubeClientDriver = ""
	}
}

func loseNewerManaged(o *addonv1beta1.ManagedClusterAddOn) {
	if o.Annotations[addonv1alpha1.AnnotationInstallNamespace] == "" {
		delete(o.Annotations, addonv1alpha1.AnnotationInstallNamespace)
	}
	var first *addonv1alpha1.DriverType
	for i := range o.Status.Registrations {
		if r := o.Status.Registrations[i]; r.Type == addonv1beta1.RegistrationTypeKubeClient && first == nil {
			first = new(addonv1alpha1.DriverType)
			if r.KubeClient != nil {
				*first = r.KubeClient.Driver
			}
		}
	}
	for i := range o.Status.Registrations {
		loseRegistration(&o.Status.Registrations[i], first)
	}
}

// loseRegistration drops the member that the type does not name, makes a custom
// signer that is the API server's a client of it, and sets the driver.
func loseRegistration(r *addonv1beta1.RegistrationConfig, driver *addonv1alpha1.DriverType) {
	if r.Type == addonv1beta1.RegistrationTypeCustomSigner {
		r.KubeClient = nil
		if r.CustomSigner == nil {
			return
		}
		if r.CustomSigner.SignerName != addonv1alpha1.KubeAPIServerSigner {
			if cmp.Equal(*r.CustomSigner, addonv1beta1.CustomSignerConfig{}, cmpopts.EquateEmpty()) {
				r.CustomSigner = nil
			}
			return
		}
		r.Type = addonv1beta1.RegistrationTypeKubeClient
		r.KubeClient = &addonv1beta1.KubeClientConfig{Subject: addonv1beta1.KubeClientSubject{
			User: r.CustomSigner.Subject.User, Groups: r.CustomSigner.Subject.Groups,
		}}
	}
	r.CustomSigner = nil
	if r.KubeClient == nil {
		r.KubeClient = &addonv1beta1.KubeClientConfig{}
	}
	r.KubeClient.Driver = ""
	if driver != nil {
		r.KubeClient.Driver = *driver
	}
	if cmp.Equal(*r.KubeClient, addonv1beta1.KubeClientConfig{}, cmpopts.EquateEmpty()) {
		r.KubeClient = nil
	}
}

func loseOlderManagement(o *addonv1alpha1.ClusterManagementAddOn) {
	o.Spec.AddOnConfiguration = addonv1alpha1.AddOnConfigCoordinates{}
	for i := range o.Spec.SupportedConfigs {
		supported := &o.Spec.SupportedConfigs[i]
		if d := supported.DefaultConfig; d != nil && (d.Name == "" || d.Name == addonv1alpha1.ReservedNoDefault) {
			supported.DefaultConfig = nil
		}
	}
}

func loseNewerManagement(o *addonv1beta1.ClusterManagementAddOn) {
	for i := range o.Spec.DefaultConfigs {
		if d := &o.Spec.DefaultConfigs[i]; d.Name == "" || d.Name == addonv1alpha1.ReservedNoDefault {
			d.ConfigReferent = addonv1alpha1.ConfigReferent{Name: addonv1alpha1.ReservedNoDefault}
		}
	}
}

// FuzzConvert tries arbitrary text: it must not panic, and what converts once
// converts three times to the same.
func FuzzConvert(f *testing.F) {
	for _, kind := range []string{"ManagedClusterAddOn", "ClusterManagementAddOn", "AddOnTemplate"} {
		for _, version := range []string{older, newer} {
			head := `{"kind":"` + kind + `","apiVersion":"` + version + `"`
			f.Add([]byte(head + `}`))
			f.Add([]byte(head + `,"metadata":{"annotations":{"addon.open-cluster-management.io/v1alpha1-install-namespace":"n"}},"spec":{"installNamespace":"m"}}`))
			f.Add([]byte(head + `,"spec":{"supportedConfigs":[{"defaultConfig":{"name":"n"}}],"defaultConfigs":[{"name":"n"}]}}`))
			f.Add([]byte(
				head + `,"status":{"kubeClientDriver":"csr",` +
					`"registrations":[{"signerName":"kubernetes.io/kube-apiserver-client","type":"kubeClient"}],` +
					`"configReferences":[{"name":"n"}]}}`,
			))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var meta metav1.TypeMeta
		there, back := newer, older
		if json.Unmarshal(raw, &meta) == nil && meta.APIVersion == newer {
			there, back = older, newer
		}
		once, err := conversion.Convert(raw, there)
		if err != nil {
			return
		}
		twice, err := conversion.Convert(once, back)
		if err != nil {
			return // A field of the wrong type that only the way back looks at.
		}
		thrice, err := conversion.Convert(twice, there)
		require.NoError(t, err)
		require.JSONEq(t, string(once), string(thrice))
	})
}
