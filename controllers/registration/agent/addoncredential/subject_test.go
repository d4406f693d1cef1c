// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

const own = "system:open-cluster-management:cluster:c1:addon:web"

func TestSubjects(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, tc := range map[string]struct {
		custom bool
		in     addonv1alpha1.Subject
		// want is user | groups | units; or an error must contain problem.
		want    string
		problem string
	}{
		"the default":                    {want: own + ":agent:web | " + own + " | "},
		"the default of a custom signer": {custom: true, want: own + ":agent:web |  | "},
		"own groups, the old one included": {
			in: addonv1alpha1.Subject{
				Groups: []string{"system:open-cluster-management:addon:web", own, "system:authenticated"},
			},
			want: own + ":agent:web | system:authenticated," + "system:open-cluster-management:addon:web," + own + " | ",
		},
		"another agent of the add-on": {
			in:   addonv1alpha1.Subject{User: own + ":agent:abcde"},
			want: own + ":agent:abcde | " + own + " | ",
		},
		"names outside of system:": {
			in:   addonv1alpha1.Subject{User: "u", Groups: []string{"b", "a"}},
			want: "u | a,b | ",
		},
		"units of a custom signer": {
			custom: true,
			in:     addonv1alpha1.Subject{OrganizationUnits: []string{"o"}},
			want:   own + ":agent:web |  | o",
		},
		"units are not for the hub": {
			in:   addonv1alpha1.Subject{OrganizationUnits: []string{"o"}},
			want: own + ":agent:web | " + own + " | ",
		},

		"masters": {
			in:      addonv1alpha1.Subject{Groups: []string{"system:masters"}},
			problem: "system:masters",
		},
		"masters of a custom signer": {
			custom:  true,
			in:      addonv1alpha1.Subject{Groups: []string{"system:masters"}},
			problem: "system:masters",
		},
		"a user of Kubernetes": {
			in:      addonv1alpha1.Subject{User: "system:kube-controller-manager"},
			problem: "must start with",
		},
		"the agent itself": {
			in:      addonv1alpha1.Subject{User: "system:open-cluster-management:c1:agent"},
			problem: "must start with",
		},
		"the group of the agent": {
			in:      addonv1alpha1.Subject{Groups: []string{"system:open-cluster-management:c1"}},
			problem: "may be asked for",
		},
		"the group of another agent": {
			in:      addonv1alpha1.Subject{Groups: []string{"open-cluster-management:c2"}},
			problem: "those of agents",
		},
		"another cluster": {
			in:      addonv1alpha1.Subject{Groups: []string{"system:open-cluster-management:cluster:c2:addon:web"}},
			problem: "may be asked for",
		},
		"another add-on": {
			in:      addonv1alpha1.Subject{User: "system:open-cluster-management:cluster:c1:addon:web2:agent:x"},
			problem: "must start with",
		},
		"another add-on whose name is ours": {
			in:      addonv1alpha1.Subject{Groups: []string{own + "2"}},
			problem: "may be asked for",
		},
		"a long user":  {in: addonv1alpha1.Subject{User: long}, problem: "300 bytes"},
		"a long group": {in: addonv1alpha1.Subject{Groups: []string{long}}, problem: "300 bytes"},
		"a long unit": {
			custom:  true,
			in:      addonv1alpha1.Subject{OrganizationUnits: []string{long}},
			problem: "300 bytes",
		},
		"too many groups": {
			in:      addonv1alpha1.Subject{Groups: strings.Split(strings.Repeat("a,", 17), ",")},
			problem: "at most 16",
		},
		"an empty group":     {in: addonv1alpha1.Subject{Groups: []string{""}}, problem: "empty"},
		"a line break":       {in: addonv1alpha1.Subject{User: "a\nb"}, problem: "printable"},
		"a space at the end": {in: addonv1alpha1.Subject{Groups: []string{"a "}}, problem: "printable"},
		"a mask":             {in: addonv1alpha1.Subject{User: " system:admin"}, problem: "printable"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := subjectOf("c1", "web", !tc.custom, tc.in)
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				return
			}
			require.NoError(t, err)
			require.Equal(
				t, tc.want,
				got.CommonName+" | "+strings.Join(got.Organization, ",")+" | "+strings.Join(got.OrganizationalUnit, ","),
			)
		})
	}
}

// FuzzSubject checks that nothing is requested that belongs to others.
func FuzzSubject(f *testing.F) {
	for _, seed := range []string{
		"", "u", "system:masters", own, own + ":agent:x", "open-cluster-management:c2", "\x00", " system:masters",
	} {
		f.Add(seed, seed, true)
		f.Add("u", seed, false)
	}
	f.Fuzz(func(t *testing.T, user, group string, kubeClient bool) {
		got, err := subjectOf("c1", "web", kubeClient, addonv1alpha1.Subject{User: user, Groups: []string{group}})
		if err != nil {
			return
		}
		require.True(
			t, !strings.HasPrefix(got.CommonName, "system:") || strings.HasPrefix(got.CommonName, own+":"), "%q",
			got.CommonName,
		)
		for _, g := range got.Organization {
			fine := g == own || g == "system:open-cluster-management:addon:web" || g == "system:authenticated"
			require.True(
				t, fine || (!strings.HasPrefix(g, "system:") && !strings.HasPrefix(g, "open-cluster-management:")),
				"%q", g,
			)
			require.LessOrEqual(t, len(g), maxName)
		}
	})
}

func TestTokenMessages(t *testing.T) {
	const good = "ServiceAccount c1/web-agent (UID: 0f6a-1) is ready"
	uid, err := parseTokenMessage(good, "c1", "web")
	require.NoError(t, err)
	require.Equal(t, "0f6a-1", string(uid))
	for name, message := range map[string]string{
		"nothing":              "",
		"another cluster":      "ServiceAccount c2/web-agent (UID: 1) is ready",
		"another add-on":       "ServiceAccount c1/web2-agent (UID: 1) is ready",
		"no UID":               "ServiceAccount c1/web-agent (UID: ) is ready",
		"a UID that is none":   "ServiceAccount c1/web-agent (UID: a b) is ready",
		"a UID without end":    "ServiceAccount c1/web-agent (UID: " + strings.Repeat("a", 65) + ") is ready",
		"not ready":            "ServiceAccount c1/web-agent (UID: 1) is not ready",
		"cut off":              "ServiceAccount c1/web-agent (UID: 1",
		"something before":     "x" + good,
		"something after":      good + ".",
		"two UIDs in one text": "ServiceAccount c1/web-agent (UID: 1) (UID: 2) is ready",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseTokenMessage(message, "c1", "web")
			require.Error(t, err)
		})
	}
}

// FuzzTokenMessage checks that a UID is only read from exactly the message of the API
// contract.
func FuzzTokenMessage(f *testing.F) {
	f.Add("ServiceAccount c1/web-agent (UID: 0f6a-1) is ready")
	f.Add("ServiceAccount c1/web-agent (UID: ) is ready")
	f.Add("(UID: x)")
	f.Fuzz(func(t *testing.T, message string) {
		uid, err := parseTokenMessage(message, "c1", "web")
		if err != nil {
			require.Empty(t, uid)
			return
		}
		require.Equal(t, message, "ServiceAccount c1/web-agent (UID: "+string(uid)+") is ready")
	})
}

func TestRefusedNames(t *testing.T) {
	a := func(name string, change func(*addonv1alpha1.ManagedClusterAddOn), signers ...string) *addonv1alpha1.ManagedClusterAddOn {
		out := &addonv1alpha1.ManagedClusterAddOn{}
		out.Namespace, out.Name = "c1", name
		for _, s := range signers {
			out.Status.Registrations = append(out.Status.Registrations, addonv1alpha1.RegistrationConfig{SignerName: s})
		}
		if change != nil {
			change(out)
		}
		return out
	}
	kube := addonv1alpha1.KubeAPIServerSigner
	for name, tc := range map[string]struct {
		addOn *addonv1alpha1.ManagedClusterAddOn
		want  []string
	}{
		"fine":                          {a("web", nil, kube, "example.com/x"), []string{"", ""}},
		"the bootstrap secret":          {a("bootstrap", nil, kube), []string{"the agent's own"}},
		"another secret that only ends": {a("hub-kubeconfig-secret", nil, kube), []string{""}},
		"a long name":                   {a(strings.Repeat("a", 64), nil, kube), []string{"at most 63"}},
		"a long signer": {
			a("web", nil, "example.com/"+strings.Repeat("a", 300)),
			[]string{"would not be valid"},
		},
		"a signer for nodes":   {a("web", nil, "kubernetes.io/kubelet-serving"), []string{"not for add-ons"}},
		"the signer of agents": {a("web", nil, "open-cluster-management.io/grpc"), []string{"not for add-ons"}},
		"the same twice":       {a("web", nil, kube, kube), []string{"", "two registrations"}},
		"seventeen": {
			a("web", nil, strings.Split(strings.TrimSpace(strings.Repeat("example.com/x ", 17)), " ")...),
			append([]string{""}, append(
				strings.Split(strings.Repeat("two registrations,", 14), ",")[:14], "two registrations",
				"17 registrations",
			)...),
		},
		"a namespace that is none": {
			a("web", func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Namespace = "../x" }, kube),
			[]string{"DNS label"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			prepare(tc.addOn, addonv1alpha1.DriverTypeCSR)
			wants := wantsOf(tc.addOn, hubConfig().ID())
			require.Len(t, wants, len(tc.want))
			for i, w := range wants {
				if tc.want[i] == "" {
					require.Empty(t, w.Problem)
				}
				require.Contains(t, w.Problem, tc.want[i])
			}
		})
	}
}

func TestDriverIsWrittenAndUsersOfTokensAreNoUsersOfCertificates(t *testing.T) {
	const user = "system:serviceaccount:c1:web-agent"
	addOn := func(driver addonv1alpha1.DriverType, subject addonv1alpha1.Subject) *addonv1alpha1.ManagedClusterAddOn {
		out := &addonv1alpha1.ManagedClusterAddOn{}
		out.Namespace, out.Name = "c1", "web"
		out.Status.KubeClientDriver = driver
		out.Status.Registrations = []addonv1alpha1.RegistrationConfig{
			{
				SignerName: addonv1alpha1.KubeAPIServerSigner,
				Subject:    subject,
			}, {
				SignerName: "example.com/x",
				Subject:    addonv1alpha1.Subject{User: user},
			}}
		return out
	}
	somebody := addonv1alpha1.Subject{User: "somebody", Groups: []string{"g"}}
	for name, tc := range map[string]struct {
		driver    addonv1alpha1.DriverType
		have      *addonv1alpha1.ManagedClusterAddOn
		want      *addonv1alpha1.ManagedClusterAddOn
		unchanged bool
	}{
		"new, certificates": {"csr", addOn("", somebody), addOn("csr", somebody), false},
		"new, tokens":       {"token", addOn("", somebody), addOn("token", addonv1alpha1.Subject{User: user}), false},
		"tokens, settled": {
			"token",
			addOn("token", addonv1alpha1.Subject{User: user}),
			addOn("token", addonv1alpha1.Subject{User: user}),
			true,
		},
		"back to certificates": {
			"csr",
			addOn("token", addonv1alpha1.Subject{User: user}),
			addOn("csr", addonv1alpha1.Subject{}),
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.have.DeepCopy()
			prepare(got, tc.driver)
			require.Empty(t, cmp.Diff(tc.want, got))
			require.Equal(t, tc.unchanged, sameRegistrations(tc.have, got))
		})
	}
	none := &addonv1alpha1.ManagedClusterAddOn{}
	prepare(none, addonv1alpha1.DriverTypeToken)
	require.Empty(t, none.Status.KubeClientDriver)
}

func TestOfManyAddOnsTheOldestAreServed(t *testing.T) {
	var all []*addonv1alpha1.ManagedClusterAddOn
	add := func(name string, age time.Duration, registrations int) *addonv1alpha1.ManagedClusterAddOn {
		a := &addonv1alpha1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))},
		}
		a.Status.Registrations = make([]addonv1alpha1.RegistrationConfig, registrations)
		all = append(all, a)
		return a
	}
	for i := range maxAddOns - 1 {
		add(fmt.Sprintf("n%03d", i), time.Hour, 1)
	}
	all = append(all, nil)
	add("bare", 2*time.Hour, 0)
	last := add("o", time.Hour, 1)
	require.False(t, isSurplus(last, all), "add-ons that cannot be read or request nothing are not counted")
	first := add("a", 2*time.Hour, 1)
	require.True(t, isSurplus(last, all))
	require.False(t, isSurplus(first, all))
	require.False(t, isSurplus(nil, all))
}

func TestSixteenRegistrationsOfAnAddOnAreServed(t *testing.T) {
	a := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web"}}
	for i := range maxRegistrations + 3 {
		a.Status.Registrations = append(a.Status.Registrations, addonv1alpha1.RegistrationConfig{
			SignerName: fmt.Sprintf("example.com/s%d", i),
		})
	}
	wants := wantsOf(a, "hub")
	require.Len(t, wants, maxRegistrations+1)
	for _, w := range wants[:maxRegistrations] {
		require.Empty(t, w.Problem)
	}
	require.Equal(t, "19 registrations, the first 16 are served", wants[maxRegistrations].Problem)
}
