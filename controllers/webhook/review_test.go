// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// paths lists all paths that answer admission reviews.
var paths = []string{
	webhook.PathMutateCluster,
	webhook.PathValidateCluster,
	webhook.PathValidateBinding,
	webhook.PathValidateSet,
	webhook.PathValidateWork,
	webhook.PathValidateWorkSet,
}

func TestWhatIsNoReviewIsRefused(t *testing.T) {
	h := server(&stated{}, all)
	deep := strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_000)
	for name, body := range map[string]string{
		"no JSON": "{", "nothing": "", "no request": "{}", "no object": "[]", "null": "null", "a text": `"review"`,
		"a request of another type": `{"request":[]}`, "too deep": deep,
		"too deep inside": `{"request":{"uid":"u","object":` + deep + `}}`,
	} {
		for _, path := range append(paths, webhook.PathConvert) {
			start := time.Now()
			w := post(h, path, body)
			require.Equal(t, http.StatusBadRequest, w.Code, "%s: %s", path, name)
			require.Less(t, w.Body.Len(), 4096, "%s: %s: the answer is not as long as the question", path, name)
			require.Less(t, time.Since(start), time.Minute, "%s: %s", path, name)
		}
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/yaml", "application/json2", "%"} {
		request := httptest.NewRequest(
			http.MethodPost, webhook.PathValidateCluster, strings.NewReader(`{"request":{"uid":"u"}}`),
		)
		request.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request)
		require.Equal(t, http.StatusBadRequest, w.Code, kind)
		require.Contains(t, w.Body.String(), "application/json")
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, webhook.PathValidateCluster, http.NoBody))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
	}
}

func TestAnObjectThatCannotBeDecodedIsRefused(t *testing.T) {
	h := server(&stated{}, all)
	for _, path := range paths {
		for _, object := range []string{`{"metadata":[]}`, `{"metadata":{"name":7}}`, `{"spec":"x"}`, `[]`, `"x"`, `{"metadata":{"labels":{"a":{}}}}`} {
			w := post(
				h, path,
				`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u","object":`+object+`}}`,
			)
			require.Equal(t, http.StatusOK, w.Code)
			require.Contains(t, w.Body.String(), `"admission.k8s.io/v1beta1"`)
			require.Contains(t, w.Body.String(), `"uid":"u"`)
			require.Contains(t, w.Body.String(), `"allowed":false`)
			require.Contains(t, w.Body.String(), "cannot be decoded", "%s: %s", path, object)
		}
	}
}

func TestKeysAreTakenAsTheyAreWritten(t *testing.T) {
	// The API server stores prod10; "Name" is an unknown key.
	h := server(&stated{rights: []string{"update managedclusters/accept prod1"}}, all)
	user, err := json.Marshal(agentOf("prod1"))
	require.NoError(t, err)
	ask := func(object, old string) string {
		return post(
			h, webhook.PathValidateCluster,
			`{"request":{"uid":"u","operation":"UPDATE","userInfo":`+string(user)+`,"object":`+object+`,"oldObject":`+old+`}}`,
		).Body.String()
	}
	const other = `{"metadata":{"name":"prod10"}}`
	require.Contains(t, ask(`{"metadata":{"name":"prod10","Name":"prod1"}}`, other), "another cluster")
	require.Contains(t, ask(`{"metadata":{"name":"prod10"},"Metadata":{"name":"prod1"}}`, other), "another cluster")
	// The name in the request counts, whatever the object says.
	named := post(
		h, webhook.PathValidateCluster,
		`{"request":{"uid":"u","name":"prod10","operation":"UPDATE","userInfo":`+string(
			user,
		)+`,"object":{"metadata":{"name":"prod1"}},"oldObject":{"metadata":{"name":"prod1"}}}}`,
	)
	require.Contains(t, named.Body.String(), "another cluster")
}

func TestConversion(t *testing.T) {
	h := server(&stated{}, all)
	convert := func(object string) string {
		w := post(
			h, webhook.PathConvert,
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u",`+
				`"desiredAPIVersion":"addon.open-cluster-management.io/v1beta1","objects":[`+object+`]}}`,
		)
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	answer := convert(
		`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ManagedClusterAddOn",` +
			`"metadata":{"name":"a","namespace":"c1"},"spec":{"installNamespace":"x"}}`,
	)
	require.Contains(t, answer, `"apiVersion":"addon.open-cluster-management.io/v1beta1"`)
	require.Contains(t, answer, `"status":"Success"`)
	answer = convert(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
	require.Contains(t, answer, `"status":"Failure"`)
	require.Contains(t, answer, "object 1 of 1")
}

// FuzzAdmission sends arbitrary new and old objects to each path, as an agent and as a user
// without rights: every review is answered with its uid, nothing panics, and no agent changes
// an object of another cluster.
func FuzzAdmission(f *testing.F) {
	mutated, err := json.Marshal(
		mc(accepted, tainted(clusterv1.Taint{Key: "k", Effect: "NoSelect", TimeAdded: &metav1.Time{Time: now}})),
	)
	require.NoError(f, err)
	plain, err := json.Marshal(mc())
	require.NoError(f, err)
	for i := range paths {
		f.Add(i, plain, mutated, true, true)
		f.Add(i, mutated, plain, false, true)
		f.Add(
			i,
			[]byte(
				`{"metadata":{"name":"s1"},"spec":{"clusterSet":"s1","clusterSelector":{"labelSelector":`+
					`{"matchExpressions":[{"key":"a","operator":"In"}]}},"managedNamespaces":[{"name":"x"}]}}`,
			),
			[]byte(`null`), true, false,
		)
		f.Add(
			i,
			[]byte(
				`{"metadata":{"name":"s"},"spec":{"placementRefs":[{"name":"p","rolloutStrategy":{"type":"Progressive",`+
					`"progressive":{"maxConcurrency":"-1%","progressDeadline":"1h30m"}}}],"manifestWorkTemplate":{`+
					`"executor":{"subject":{}},"manifestConfigs":[{"feedbackRules":[{"jsonPaths":[{"path":".a[?("}]}]}],`+
					`"workload":{"manifests":[{"apiVersion":"v1","kind":"a","metadata":{"name":"x"}}]}}}}`,
			),
			[]byte(`{"spec":{"manifestWorkTemplate":null}}`), i%2 == 0, false,
		)
		f.Add(
			i,
			[]byte(
				`{"metadata":{"name":"prod10","Name":"prod1"},"spec":{"workload":{"manifests":[{"kind":"a","metadata":{"name":"x"}},null]}}}`,
			),
			[]byte(`{}`), true, true,
		)
	}
	f.Fuzz(func(t *testing.T, path int, object, old []byte, update, agent bool) {
		if !json.Valid(object) || !json.Valid(old) || path < 0 {
			return
		}
		request := admissionv1.AdmissionRequest{
			UID:       "the-uid",
			Operation: admissionv1.Create,
			Namespace: "other",
			UserInfo:  authenticationv1.UserInfo{Username: "eve"},
		}
		if update {
			request.Operation, request.OldObject.Raw = admissionv1.Update, old
		}
		if agent {
			request.UserInfo = agentOf("prod1")
		}
		request.Object.Raw = object
		body, err := json.Marshal(admissionv1.AdmissionReview{Request: &request})
		require.NoError(t, err)
		w := post(server(&stated{}, all), paths[path%len(paths)], string(body))
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		answer := admissionv1.AdmissionReview{}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
		require.EqualValues(t, "the-uid", answer.Response.UID)
		require.NotContains(t, w.Body.String(), "panic")
		if !agent || !answer.Response.Allowed {
			return
		}
		switch paths[path%len(paths)] {
		case webhook.PathValidateWork, webhook.PathValidateWorkSet:
			t.Fatalf("an agent changed a work of another cluster, or a set of works: %s", object)
		case webhook.PathValidateCluster:
			var stored struct {
				Metadata map[string]any `json:"metadata"`
			}
			require.NoError(t, json.Unmarshal(object, &stored))
			require.Equal(t, "prod1", stored.Metadata["name"])
		}
	})
}
