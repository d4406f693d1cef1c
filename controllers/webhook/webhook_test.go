// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// stated is a Hub with fixed answers: the rights that users have, one per line, and the
// namespaces that exist.
type stated struct {
	rights     []string
	namespaces map[string]*metav1.ObjectMeta
	denied     []string
	standing   map[string]int
	broken     error
	asked      []authenticationv1.UserInfo
	about      []authorizationv1.ResourceAttributes
}

func (h *stated) Allowed(_ context.Context, user authenticationv1.UserInfo, a authorizationv1.ResourceAttributes) (bool, error) {
	h.asked, h.about = append(h.asked, user), append(h.about, a)
	line := strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", a.Verb, a.Resource, a.Subresource, a.Name))
	for _, r := range h.rights {
		if r == line {
			return true, h.broken
		}
	}
	return false, h.broken
}

func (h *stated) CountWorks(_ context.Context, cluster string) (int, error) {
	return h.standing[cluster], h.broken
}

func (h *stated) Denied(_ context.Context, cluster string) (bool, error) {
	return slices.Contains(h.denied, cluster), h.broken
}

func (h *stated) Namespace(_ context.Context, name string) (*metav1.ObjectMeta, error) {
	return h.namespaces[name], h.broken
}

var all = webhook.Features{DefaultClusterSet: true, ResourceCleanup: true, ManifestWorkReplicaSet: true}

func server(h webhook.Hub, f webhook.Features) http.Handler {
	return webhook.NewServer(webhook.Options{
		Hub: h, Self: []string{hubItself.Username}, Features: func() webhook.Features { return f },
		Clock: clocktesting.NewFakePassiveClock(now),
	}).Handler()
}

// send requests a review as the API server does.
func send(t *testing.T, h http.Handler, path string, old, current any, user authenticationv1.UserInfo) *admissionv1.AdmissionResponse {
	t.Helper()
	request := &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, UserInfo: user, Namespace: "c1"}
	encode := func(o any) runtime.RawExtension {
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		return runtime.RawExtension{Raw: raw}
	}
	request.Object = encode(current)
	if old != nil {
		request.Operation, request.OldObject = admissionv1.Update, encode(old)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	require.NoError(t, err)
	w := post(h, path, string(body))
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	answer := &admissionv1.AdmissionReview{}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), answer))
	require.Equal(t, "admission.k8s.io/v1", answer.APIVersion)
	require.EqualValues(t, "u", answer.Response.UID)
	return answer.Response
}

// post sends a body to a path.
func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return w
}

func mc(change ...func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	o := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{clusterv1.LabelClusterSet: "s1"}},
	}
	for _, c := range change {
		c(o)
	}
	return o
}

func named(name string) func(*clusterv1.ManagedCluster) {
	return func(o *clusterv1.ManagedCluster) { o.Name = name }
}

func inSet(set string) func(*clusterv1.ManagedCluster) {
	return func(o *clusterv1.ManagedCluster) { o.Labels = map[string]string{clusterv1.LabelClusterSet: set} }
}

func accepted(o *clusterv1.ManagedCluster) { o.Spec.HubAcceptsClient = true }

func annotated(key, value string) func(*clusterv1.ManagedCluster) {
	return func(o *clusterv1.ManagedCluster) { metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, value) }
}

func tainted(taints ...clusterv1.Taint) func(*clusterv1.ManagedCluster) {
	return func(o *clusterv1.ManagedCluster) { o.Spec.Taints = taints }
}

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

var person = authenticationv1.UserInfo{
	Username: "ann", UID: "7", Groups: []string{"people"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
}

var hubItself = authenticationv1.UserInfo{Username: "system:serviceaccount:hub:hub"}

func agentOf(cluster string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{
		Username: clusterv1.UserPrefix + cluster + ":a",
		Groups:   []string{clusterv1.UserPrefix + cluster, clusterv1.GroupManagedClusters, "system:authenticated"},
	}
}

// patched applies the patch of the response to the object.
func patched(t *testing.T, o *clusterv1.ManagedCluster, response *admissionv1.AdmissionResponse) *clusterv1.ManagedCluster {
	t.Helper()
	out := o.DeepCopy()
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if len(response.Patch) == 0 {
		return out
	}
	require.NoError(t, json.Unmarshal(response.Patch, &operations))
	for _, op := range operations {
		var into any
		switch op.Path {
		case "/metadata/labels":
			out.Labels = nil
			into = &out.Labels
		case "/metadata/annotations":
			out.Annotations = nil
			into = &out.Annotations
		case "/metadata/finalizers":
			into = &out.Finalizers
		case "/spec/taints":
			out.Spec.Taints = nil
			into = &out.Spec.Taints
		case "/spec/leaseDurationSeconds":
			into = &out.Spec.LeaseDurationSeconds
		case "/spec":
			continue
		default:
			t.Fatalf("a patch of %s", op.Path)
		}
		require.NoError(t, json.Unmarshal(op.Value, into))
	}
	return out
}

func TestCreationIsCompleted(t *testing.T) {
	h := server(&stated{}, all)
	bare := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	got := patched(t, bare, send(t, h, webhook.PathMutateCluster, nil, bare, person))
	require.Equal(t, "default", got.Labels[clusterv1.LabelClusterSet])
	require.Equal(t, "ann", got.Annotations[clusterv1.AnnotationCreator])
	require.Equal(t, []string{clusterv1.FinalizerResourceCleanup}, got.Finalizers)
	require.Len(t, got.Spec.Taints, 1)
	require.Equal(t, clusterv1.TaintUnreachable, got.Spec.Taints[0].Key)
	require.True(t, got.Spec.Taints[0].TimeAdded.Equal(at(now)))

	given := mc(accepted, tainted(clusterv1.Taint{Key: "k", Effect: "NoSelect", TimeAdded: at(now.Add(-time.Hour))}),
		annotated(clusterv1.AnnotationCreator, "somebody"), annotated(clusterv1.AnnotationAdoptedNamespace, "x"))
	got = patched(t, given, send(t, h, webhook.PathMutateCluster, nil, given, person))
	require.Equal(t, "s1", got.Labels[clusterv1.LabelClusterSet])
	require.Equal(t, "ann", got.Annotations[clusterv1.AnnotationCreator], "a user cannot name another creator")
	require.NotContains(t, got.Annotations, clusterv1.AnnotationAdoptedNamespace)
	require.True(t, got.Spec.Taints[0].TimeAdded.Equal(at(now)), "the caller's time is ignored")
	require.Equal(t, []string{clusterv1.FinalizerResourceCleanup, clusterv1.FinalizerAPIResourceCleanup}, got.Finalizers)

	got = patched(t, bare, send(t, server(&stated{}, webhook.Features{}), webhook.PathMutateCluster, nil, bare, person))
	require.Empty(t, got.Labels)
	require.Empty(t, got.Finalizers)
}

func TestTaintsOfOneKeyDoNotLockTheCluster(t *testing.T) {
	stored := mc(tainted(clusterv1.Taint{Key: "k", Effect: "NoSelect", TimeAdded: at(now.Add(-time.Hour))},
		clusterv1.Taint{Key: "k", Effect: "PreferNoSelect", TimeAdded: at(now.Add(-2 * time.Hour))}))
	changed := stored.DeepCopy()
	changed.Finalizers = []string{"example.com/any"}
	response := send(t, server(&stated{}, all), webhook.PathMutateCluster, stored, changed, person)
	require.True(t, response.Allowed, "%v", response.Result)
}

func TestTaintsAreTimed(t *testing.T) {
	old := mc(tainted(clusterv1.Taint{Key: "k", Value: "v", Effect: "NoSelect", TimeAdded: at(now.Add(-time.Hour))}))
	for name, tc := range map[string]struct {
		taints []clusterv1.Taint
		want   time.Time
		fail   bool
	}{
		"an unchanged taint keeps its time": {
			[]clusterv1.Taint{{Key: "k", Value: "v", Effect: "NoSelect", TimeAdded: at(now.Add(-time.Hour))}},
			now.Add(-time.Hour),
			false,
		},
		"an unchanged taint with another": {
			[]clusterv1.Taint{{Key: "k", Value: "v", Effect: "NoSelect", TimeAdded: at(now)}},
			now,
			true,
		},
		"an unchanged taint without": {[]clusterv1.Taint{{Key: "k", Value: "v", Effect: "NoSelect"}}, now, true},
		"a changed effect":           {[]clusterv1.Taint{{Key: "k", Value: "v", Effect: "PreferNoSelect"}}, now, false},
		"a changed value with a time": {
			[]clusterv1.Taint{{Key: "k", Value: "w", Effect: "NoSelect", TimeAdded: at(now)}},
			now,
			true,
		},
		"a new taint":             {[]clusterv1.Taint{{Key: "n", Effect: "NoSelect"}}, now, false},
		"a new taint with a time": {[]clusterv1.Taint{{Key: "n", Effect: "NoSelect", TimeAdded: at(now)}}, now, true},
	} {
		t.Run(name, func(t *testing.T) {
			changed := mc(tainted(tc.taints...))
			response := send(t, server(&stated{}, all), webhook.PathMutateCluster, old, changed, person)
			require.Equal(t, !tc.fail, response.Allowed)
			if tc.fail {
				require.EqualValues(t, http.StatusBadRequest, response.Result.Code)
				require.Contains(t, response.Result.Message, tc.taints[0].Key)
				return
			}
			require.True(t, patched(t, changed, response).Spec.Taints[0].TimeAdded.Equal(at(tc.want)))
		})
	}
}

func TestAClusterIsPutIntoTheDefaultSet(t *testing.T) {
	none := inSet("")
	goes := func(o *clusterv1.ManagedCluster) { o.DeletionTimestamp = at(now) }
	for name, tc := range map[string]struct {
		old, current *clusterv1.ManagedCluster
		user         authenticationv1.UserInfo
		rights       []string
		want         string
	}{
		"a label that is taken off": {mc(), mc(none), person, nil, "default"},
		"a cluster that never had one": {
			mc(none),
			mc(none),
			person,
			[]string{"create managedclustersets/join default"},
			"default",
		},
		"not when the author may not join it": {mc(none), mc(none), person, nil, ""},
		"not by an agent": {
			mc(none),
			mc(none),
			agentOf("c1"),
			[]string{"create managedclustersets/join default"},
			"",
		},
		"not when the cluster goes": {
			mc(none),
			mc(none, goes),
			person,
			[]string{"create managedclustersets/join default"},
			"",
		},
		"another set stays, also one that is not there": {mc(), mc(inSet("s2")), person, nil, "s2"},
	} {
		t.Run(name, func(t *testing.T) {
			response := send(t, server(&stated{rights: tc.rights}, all), webhook.PathMutateCluster, tc.old, tc.current, tc.user)
			require.True(t, response.Allowed)
			require.Equal(t, tc.want, patched(t, tc.current, response).Labels[clusterv1.LabelClusterSet])
		})
	}
}

func TestAcceptanceNotesTheNamespaceThatItTakes(t *testing.T) {
	foreign := map[string]*metav1.ObjectMeta{"c1": {Name: "c1", UID: "ns"}}
	ours := map[string]*metav1.ObjectMeta{
		"c1": {Name: "c1", UID: "ns", Labels: map[string]string{clusterv1.LabelClusterName: "c1"}},
	}
	for name, tc := range map[string]struct {
		namespaces map[string]*metav1.ObjectMeta
		rights     []string
		want       string
	}{
		"no namespace":                        {},
		"its own namespace":                   {namespaces: ours},
		"a foreign one, which may be updated": {namespaces: foreign, rights: []string{"update namespaces/ c1"}, want: "ns"},
		"a foreign one, which may not":        {namespaces: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			response := send(
				t, server(&stated{rights: tc.rights, namespaces: tc.namespaces}, all), webhook.PathMutateCluster, mc(),
				mc(accepted), person,
			)
			got := patched(t, mc(accepted), response)
			require.Equal(t, tc.want, got.Annotations[clusterv1.AnnotationAdoptedNamespace])
			require.Contains(t, got.Finalizers, clusterv1.FinalizerAPIResourceCleanup)
		})
	}
	kept := patched(t, mc(), send(t, server(&stated{}, all), webhook.PathMutateCluster,
		mc(annotated(clusterv1.AnnotationCreator, "bob")), mc(), person))
	require.Equal(
		t, "bob", kept.Annotations[clusterv1.AnnotationCreator], "a replacement that does not know the annotation keeps it",
	)
}

func TestValidateCluster(t *testing.T) {
	accept, join1, join2 := "update managedclusters/accept c1", "create managedclustersets/join s1", "create managedclustersets/join s2"
	url := func(u string) func(*clusterv1.ManagedCluster) {
		return func(o *clusterv1.ManagedCluster) {
			o.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: u}}
		}
	}
	ns := func(change func(*metav1.ObjectMeta)) map[string]*metav1.ObjectMeta {
		o := &metav1.ObjectMeta{Name: "c1", UID: "ns", Labels: map[string]string{clusterv1.LabelClusterName: "c1"}}
		change(o)
		return map[string]*metav1.ObjectMeta{"c1": o}
	}
	for name, tc := range map[string]struct {
		old, current *clusterv1.ManagedCluster
		user         authenticationv1.UserInfo
		rights       []string
		namespaces   map[string]*metav1.ObjectMeta
		code         int32
		message      string
	}{
		"a plain creation": {nil, mc(), person, []string{join1}, nil, 0, ""},
		"a creation into a set that may not be joined": {nil, mc(), person, nil, nil, 403, "managedclustersets/join"},
		"a dotted name":   {nil, mc(named("a.b")), person, []string{join1}, nil, 400, "a.b"},
		"a reserved name": {nil, mc(named("kube-x")), person, []string{join1}, nil, 400, "reserved"},
		"a stored reserved name is not accepted": {
			mc(named("kube-x")),
			mc(named("kube-x"), accepted),
			person,
			[]string{"update managedclusters/accept kube-x"},
			nil,
			400,
			"reserved",
		},
		"a cluster with a stored reserved name can be changed": {
			mc(named("kube-x")),
			mc(named("kube-x"), annotated("a", "b")),
			person,
			nil,
			nil,
			0,
			"",
		},
		"an address without https": {
			nil,
			mc(url("http://x")),
			person,
			[]string{join1},
			nil,
			400,
			`url "http://x" is invalid in client configs`,
		},
		"an address without host": {
			mc(),
			mc(url("https://")),
			person,
			nil,
			nil,
			400,
			`url "https://" is invalid in client configs`,
		},
		"an address that is none": {
			mc(),
			mc(url("https://%zz")),
			person,
			nil,
			nil,
			400,
			"is invalid in client configs",
		},
		"an address that stood before": {
			mc(url("http://x")),
			mc(url("http://x"), annotated("a", "b")),
			person,
			nil,
			nil,
			0,
			"",
		},
		"accepted at creation with the right": {nil, mc(accepted), person, []string{join1, accept}, nil, 0, ""},
		"accepted at creation without": {
			nil,
			mc(accepted),
			person,
			[]string{join1},
			nil,
			403,
			"managedclusters/accept",
		},
		"accepted with the right": {mc(), mc(accepted), person, []string{accept}, nil, 0, ""},
		"accepted with the right on another": {
			mc(),
			mc(accepted),
			person,
			[]string{"update managedclusters/accept c10"},
			nil,
			403,
			"managedclusters/accept",
		},
		"taken back without the right": {mc(accepted), mc(), person, nil, nil, 403, "managedclusters/accept"},
		"taken back with the right":    {mc(accepted), mc(), person, []string{accept}, nil, 0, ""},
		"an accepted cluster is changed otherwise": {
			mc(accepted),
			mc(accepted, annotated("a", "b")),
			person,
			nil,
			nil,
			0,
			"",
		},
		"accepted while its namespace ends": {
			mc(),
			mc(accepted),
			person,
			[]string{accept},
			ns(func(o *metav1.ObjectMeta) { o.DeletionTimestamp = at(now) }),
			403,
			"terminating",
		},
		"accepted into its own namespace": {
			mc(),
			mc(accepted),
			person,
			[]string{accept},
			ns(func(*metav1.ObjectMeta) {}),
			0,
			"",
		},
		"accepted into a foreign namespace": {
			mc(),
			mc(accepted),
			person,
			[]string{accept},
			ns(func(o *metav1.ObjectMeta) { o.Labels = nil }),
			403,
			"already exists",
		},
		"accepted into an adopted namespace": {
			mc(),
			mc(accepted, annotated(clusterv1.AnnotationAdoptedNamespace, "ns")),
			person,
			[]string{accept},
			ns(func(o *metav1.ObjectMeta) { o.Labels = nil }),
			0,
			"",
		},
		"moved with both rights": {mc(), mc(inSet("s2")), person, []string{join1, join2}, nil, 0, ""},
		"moved with the right on the new set only": {
			mc(),
			mc(inSet("s2")),
			person,
			[]string{join2},
			nil,
			403,
			"managedclustersets/join",
		},
		"moved with the right on the old set only": {
			mc(),
			mc(inSet("s2")),
			person,
			[]string{join1},
			nil,
			403,
			"managedclustersets/join",
		},
		"the creator is changed": {
			mc(annotated(clusterv1.AnnotationCreator, "a")),
			mc(annotated(clusterv1.AnnotationCreator, "b")),
			person,
			nil,
			nil,
			400,
			"creator",
		},
		"an adoption is made up": {
			mc(),
			mc(annotated(clusterv1.AnnotationAdoptedNamespace, "ns")),
			person,
			nil,
			nil,
			400,
			"adopted-namespace",
		},
		"an agent's own addresses": {mc(), mc(url("https://x")), agentOf("c1"), nil, nil, 0, ""},
		"an agent's own annotations": {
			mc(),
			mc(annotated(clusterv1.AnnotationPrefixAgent+"/x", "y")),
			agentOf("c1"),
			nil,
			nil,
			0,
			"",
		},
		"an agent's other annotations": {mc(), mc(annotated("x", "y")), agentOf("c1"), nil, nil, 403, "annotations"},
		"an agent's labels": {
			mc(),
			mc(func(o *clusterv1.ManagedCluster) { o.Labels["x"] = "y" }),
			agentOf("c1"),
			[]string{join1},
			nil,
			403,
			"labels",
		},
		"an agent's taints": {
			mc(),
			mc(tainted(clusterv1.Taint{Key: "k", Effect: "NoSelect"})),
			agentOf("c1"),
			nil,
			nil,
			403,
			"spec",
		},
		"an agent's lease duration": {
			mc(),
			mc(func(o *clusterv1.ManagedCluster) { o.Spec.LeaseDurationSeconds = 9 }),
			agentOf("c1"),
			nil,
			nil,
			403,
			"spec",
		},
		"an agent's acceptance": {mc(), mc(accepted), agentOf("c1"), []string{accept}, nil, 403, "spec"},
		"an agent's finalizers": {
			mc(),
			mc(func(o *clusterv1.ManagedCluster) { o.Finalizers = []string{"x/y"} }),
			agentOf("c1"),
			nil,
			nil,
			403,
			"finalizers",
		},
		"an agent's owners (CVE-2025-5187)": {
			mc(),
			mc(func(o *clusterv1.ManagedCluster) { o.OwnerReferences = []metav1.OwnerReference{{Name: "n"}} }),
			agentOf("c1"),
			nil,
			nil,
			403,
			"ownerReferences",
		},
		"an agent of another cluster": {mc(), mc(), agentOf("c10"), nil, nil, 403, "another cluster"},
		"an agent of EKS": {
			mc(),
			mc(url("https://x")),
			authenticationv1.UserInfo{Username: "c1", Groups: []string{"open-cluster-management:c1"}},
			nil,
			nil,
			0,
			"",
		},
		"an agent of two clusters": {
			mc(),
			mc(),
			authenticationv1.UserInfo{
				Username: "x", Groups: []string{"open-cluster-management:c1", "open-cluster-management:c2"},
			},
			nil,
			nil,
			403,
			"another cluster",
		},
		"an agent whose user is another's": {
			mc(),
			mc(),
			authenticationv1.UserInfo{Username: clusterv1.UserPrefix + "c2:a", Groups: []string{clusterv1.UserPrefix + "c1"}},
			nil,
			nil,
			403,
			"another cluster",
		},
		"an agent of no cluster": {
			mc(),
			mc(),
			authenticationv1.UserInfo{Username: "x", Groups: []string{clusterv1.GroupManagedClusters}},
			nil,
			nil,
			403,
			"another cluster",
		},
		"an agent creates its own": {nil, mc(), agentOf("c1"), []string{join1}, nil, 0, ""},
		"an agent creates its own, accepted": {
			nil,
			mc(accepted),
			agentOf("c1"),
			[]string{join1, accept},
			nil,
			403,
			"hubAcceptsClient",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var old any
			if tc.old != nil {
				old = tc.old
			}
			h := &stated{rights: tc.rights, namespaces: tc.namespaces}
			check(t, send(t, server(h, all), webhook.PathValidateCluster, old, tc.current, tc.user), tc.code, tc.message)
			for _, user := range h.asked {
				require.Equal(t, tc.user, user, "the full identity is passed on")
			}
		})
	}
}

func check(t *testing.T, response *admissionv1.AdmissionResponse, code int32, message string) {
	t.Helper()
	require.Equal(t, code == 0, response.Allowed, "%+v", response.Result)
	if code != 0 {
		require.Equal(t, code, response.Result.Code)
		require.Contains(t, response.Result.Message, message)
	}
}

func TestAHubThatCannotBeAskedRefuses(t *testing.T) {
	response := send(
		t, server(&stated{broken: errors.New("away")}, all), webhook.PathValidateCluster, mc(), mc(accepted), person,
	)
	require.False(t, response.Allowed)
	require.EqualValues(t, http.StatusInternalServerError, response.Result.Code)
}

func TestValidateBinding(t *testing.T) {
	binding := func(name, set string) *clusterv1beta2.ManagedClusterSetBinding {
		b := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.ClusterSet = set
		return b
	}
	h := server(&stated{rights: []string{"create managedclustersets/bind s1"}}, all)
	check(t, send(t, h, webhook.PathValidateBinding, nil, binding("s1", "s1"), person), 0, "")
	check(t, send(t, h, webhook.PathValidateBinding, nil, binding("s2", "s2"), person), 403, "managedclustersets/bind")
	check(t, send(t, h, webhook.PathValidateBinding, nil, binding("s1", "s2"), person), 400, "must be the same")
	check(
		t, send(t, h, webhook.PathValidateBinding, binding("s2", "s2"), binding("s2", "s1"), person), 400, "must be the same",
	)
	check(t, send(t, h, webhook.PathValidateBinding, binding("s2", "s2"), binding("s2", "s2"), person), 0, "")
}

func work(executor *workv1.ManifestWorkExecutor, manifests ...string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "w"}}
	for _, m := range manifests {
		w.Spec.Workload.Manifests = append(
			w.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(m)}},
		)
	}
	w.Spec.Executor = executor
	return w
}

func called(w *workv1.ManifestWork, characters int) *workv1.ManifestWork {
	w.Name = strings.Repeat("w", characters)
	return w
}

func executor(namespace, name string) *workv1.ManifestWorkExecutor {
	return &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: namespace, Name: name},
	}}
}

func TestValidateWork(t *testing.T) {
	const (
		good      = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`
		unnamed   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n"}}`
		generated = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`
	)
	huge := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"` + strings.Repeat("x", 500<<10) + `"}}`
	runAs := "execute-as manifestworks/ system:serviceaccount:n:robot"
	gone := work(nil)
	gone.DeletionTimestamp = at(now)
	for name, tc := range map[string]struct {
		old, current *workv1.ManifestWork
		user         authenticationv1.UserInfo
		rights       []string
		features     webhook.Features
		code         int32
		message      string
	}{
		"a work":                    {nil, work(nil, good), person, nil, all, 0, ""},
		"no manifests":              {nil, work(nil), person, nil, all, 400, "manifests should not be empty"},
		"no manifests, but it goes": {work(nil, good), gone, person, nil, all, 0, ""},
		"too large":                 {nil, work(nil, huge), person, nil, all, 400, "which exceeds the 512000 limit"},
		"too long a name": {
			nil,
			called(work(nil, good), 189),
			person,
			nil,
			all,
			400,
			"metadata.name: has 189 characters, more than the 188",
		},
		"the longest name":         {nil, called(work(nil, good), 188), person, nil, all, 0, ""},
		"a name that stood before": {called(work(nil, good), 189), called(work(nil, good), 189), person, nil, all, 0, ""},
		"no name":                  {nil, work(nil, unnamed), person, nil, all, 400, "name must be set in manifest"},
		"a generated name": {
			nil,
			work(nil, generated),
			person,
			nil,
			all,
			400,
			"generateName must not be set in manifest",
		},
		"no kind": {nil, work(nil, `{"metadata":{"name":"a"}}`), person, nil, all, 400, "manifests[0]"},
		"the same twice": {
			nil,
			work(nil, good, good),
			person,
			nil,
			all,
			400,
			"duplicate manifest for resource n/a with resource type v1.ConfigMap",
		},
		"what stood before stays":    {work(nil, unnamed), work(nil, unnamed), person, nil, all, 0, ""},
		"an executor with the right": {nil, work(executor("n", "robot"), good), person, []string{runAs}, all, 0, ""},
		"an executor without": {
			nil,
			work(executor("n", "robot"), good),
			person,
			nil,
			all,
			400,
			"user ann cannot manipulate the Manifestwork with executor n/robot in namespace c1",
		},
		"an executor that stays": {
			work(executor("n", "robot"), good),
			work(executor("n", "robot"), good),
			person,
			nil,
			all,
			0,
			"",
		},
		"an executor that changes": {
			work(nil, good),
			work(executor("n", "robot"), good),
			person,
			nil,
			all,
			400,
			"cannot manipulate",
		},
		"an executor of no account": {
			nil,
			work(&workv1.ManifestWorkExecutor{}, good),
			person,
			nil,
			all,
			400,
			"executor service account can not be nil",
		},
		"no executor, checked": {
			nil,
			work(nil, good),
			person,
			nil,
			webhook.Features{NilExecutorValidating: true},
			400,
			"executor /klusterlet-work-sa",
		},
		"no executor, allowed": {
			nil,
			work(nil, good),
			person,
			[]string{"execute-as manifestworks/ system:serviceaccount::klusterlet-work-sa"},
			webhook.Features{NilExecutorValidating: true},
			0,
			"",
		},
		"the agent of the cluster": {work(nil, good), work(nil, good), agentOf("c1"), nil, all, 0, ""},
		"the agent of another":     {work(nil, good), work(nil, good), agentOf("c10"), nil, all, 403, "another cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			var old any
			if tc.old != nil {
				old = tc.old
			}
			check(
				t, send(t, server(&stated{rights: tc.rights}, tc.features), webhook.PathValidateWork, old, tc.current, tc.user),
				tc.code, tc.message,
			)
		})
	}
}
