// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
)

func TestEveryWebhookHasAProbe(t *testing.T) {
	validating, mutating := teardown.HubAdmission()
	want := append(append(validating, mutating...), conversionFault)
	got := slices.Clone(unaskable)
	for _, p := range admissionProbes() {
		got = append(got, p.name)
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}

func TestSilenceOfAWebhookIsToldFromItsAnswer(t *testing.T) {
	refuses := probe{name: "v.example.com"}
	writes := probe{name: "m.example.com", accepted: isStamped}
	taint := func(at string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"taints": []any{map[string]any{"key": probeName, "timeAdded": at}}}}}
	}
	for name, tc := range map[string]struct {
		probe  probe
		answer *unstructured.Unstructured
		err    string
		want   *Fault
	}{
		"it refuses": {refuses, nil, `admission webhook "v.example.com" denied the request: no`, nil},
		"it lets through what it has to refuse, or is not asked": {refuses, taint(probeTime), "",
			&Fault{"v.example.com", "v.example.com is not called", "what it would refuse is admitted", false}},
		"nothing answers the call": {
			refuses,
			nil,
			`Internal error occurred: failed calling webhook "v.example.com": connection refused`,
			&Fault{"v.example.com", "v.example.com does not answer",
				`Internal error occurred: failed calling webhook "v.example.com": connection refused`, false},
		},
		"another webhook fails before": {
			refuses,
			nil,
			`Internal error occurred: failed calling webhook "other.example.com": connection refused`,
			&Fault{"v.example.com", "v.example.com could not be probed",
				`Internal error occurred: failed calling webhook "other.example.com": connection refused`,
				true},
		},
		"another webhook refuses first": {
			refuses,
			nil,
			`admission webhook "other.example.com" denied the request: no`,
			&Fault{"v.example.com", "v.example.com could not be probed",
				`admission webhook "other.example.com" denied the request: no`, true},
		},
		"we may not write such objects": {refuses, nil, "user may not create",
			&Fault{"v.example.com", "v.example.com could not be probed", "user may not create", true}},
		"its name begins as another's does": {
			refuses,
			nil,
			`admission webhook "v.example.com.evil" denied the request: no`,
			&Fault{"v.example.com", "v.example.com could not be probed",
				`admission webhook "v.example.com.evil" denied the request: no`, true},
		},
		"the mutation is made": {writes, taint("2026-11-21T12:00:00Z"), "", nil},
		"the mutation is not made": {writes, taint(probeTime), "",
			&Fault{"m.example.com", "m.example.com is not called", "what it has to set is not set", false}},
		"what was mutated is refused afterwards": {
			writes,
			nil,
			`admission webhook "v.example.com" denied the request: you may not join`,
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if tc.err != "" {
				internal := apierrors.NewInternalError(errors.New("x"))
				internal.ErrStatus.Message = tc.err
				err = internal
			}
			got := tc.probe.evaluate(tc.answer, err)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Fault{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
