// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	agentrequest "github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// forgery is a modified request of an agent of the cluster.
type forgery struct {
	template x509.CertificateRequest
	key      crypto.Signer
	csr      certificatesv1.CertificateSigningRequest
	around   func([]byte) []byte
}

// forge sends a modified request of agent a of a cluster.
func forge(t testing.TB, kube kubernetes.Interface, name string, change func(*forgery)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	f := &forgery{key: key, around: func(raw []byte) []byte { return raw }}
	f.template.Subject = pkix.Name{
		CommonName:   clusterv1.UserPrefix + name + ":a",
		Organization: []string{clusterv1.UserPrefix + name, clusterv1.GroupManagedClusters},
	}
	f.csr.GenerateName, f.csr.Labels = name+"-", map[string]string{clusterv1.LabelClusterName: name}
	f.csr.Spec.SignerName = clusterv1.SignerName
	f.csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
	change(f)
	der, err := x509.CreateCertificateRequest(rand.Reader, &f.template, f.key)
	require.NoError(t, err)
	f.csr.Spec.Request = f.around(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	made, err := kube.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &f.csr, metav1.CreateOptions{})
	require.NoError(t, err)
	return made
}

// TestOnlyTheExactFormIsAnswered sends, as an agent that may renew, requests that the API
// server accepts but that differ from an agent's.
func TestOnlyTheExactFormIsAnswered(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "form", "a")
	s.register(t, "form2", "a")
	const p = clusterv1.UserPrefix
	curve, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	answered := s.answers(t)
	// The requester's own identity and label are correct in all of them.
	ignored := map[string]string{}
	for name, change := range map[string]func(*forgery){
		"no label": func(f *forgery) { f.csr.Labels = nil },
		"another signer": func(f *forgery) {
			f.csr.Spec.SignerName = "kubernetes.io/kubelet-serving"
			f.csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
		},
		"a signer of nobody":     func(f *forgery) { f.csr.Spec.SignerName = "example.com/x" },
		"a usage more":           func(f *forgery) { f.csr.Spec.Usages = append(f.csr.Spec.Usages, certificatesv1.UsageServerAuth) },
		"no organization":        func(f *forgery) { f.template.Subject.Organization = nil },
		"the common group alone": func(f *forgery) { f.template.Subject.Organization = []string{clusterv1.GroupManagedClusters} },
		"a foreign organization": func(f *forgery) { f.template.Subject.Organization[0] = "system:nodes" },
		"an organization more": func(f *forgery) {
			f.template.Subject.Organization = append(f.template.Subject.Organization, "system:nodes")
		},
		"the organization of another": func(f *forgery) { f.template.Subject.Organization[0] = p + "form2" },
		"organization and name longer": func(f *forgery) {
			f.template.Subject = pkix.Name{CommonName: p + "form2:a", Organization: []string{p + "form2"}}
		},
		"a bad common name":             func(f *forgery) { f.template.Subject.CommonName = "form:a" },
		"a common name without agent":   func(f *forgery) { f.template.Subject.CommonName = p + "form" },
		"a common name, one colon more": func(f *forgery) { f.template.Subject.CommonName = p + "form:a:b" },
		"an alternative name":           func(f *forgery) { f.template.DNSNames = []string{"kubernetes.default"} },
		"a unit":                        func(f *forgery) { f.template.Subject.OrganizationalUnit = []string{"u"} },
		"a weak key":                    func(f *forgery) { f.key = curve },
		"a second block":                func(f *forgery) { f.around = func(raw []byte) []byte { return append(bytes.Clone(raw), raw...) } },
		"data after it":                 func(f *forgery) { f.around = func(raw []byte) []byte { return append(raw, "trailing"...) } },
		"data before it":                func(f *forgery) { f.around = func(raw []byte) []byte { return append([]byte("leading\n"), raw...) } },
		"a megabyte": func(f *forgery) {
			f.around = func(raw []byte) []byte { return append(raw, bytes.Repeat([]byte("\n"), 1<<20)...) }
		},
	} {
		ignored[name] = forge(t, a.kube, "form", change).Name
	}
	// A request without the common group is accepted.
	compat := forge(t, a.kube, "form", func(f *forgery) { f.template.Subject.Organization = f.template.Subject.Organization[:1] })
	require.True(t, eventually(func() bool { kind, _ := s.verdict(t, compat.Name); return kind == "Approved" }))
	s.settle(t, a, "form")
	seen := answered()
	require.True(t, seen[compat.Name], "answers are seen")
	for name, csr := range ignored {
		require.False(t, seen[csr], name)
		// So many requests are soon deleted by the hub.
		err := s.kube.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), csr, metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), err)
	}
}

// answers records from now on which requests are answered, including deleted ones.
func (s *scene) answers(t testing.TB) func() map[string]bool {
	t.Helper()
	list, err := s.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	watcher, err := s.kube.CertificatesV1().CertificateSigningRequests().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	seen, done := map[string]bool{}, make(chan struct{})
	go func() {
		defer close(done)
		for e := range watcher.ResultChan() {
			if csr, ok := e.Object.(*certificatesv1.CertificateSigningRequest); ok && len(csr.Status.Conditions) > 0 {
				seen[csr.Name] = true
			}
		}
	}()
	return func() map[string]bool {
		watcher.Stop()
		<-done
		return seen
	}
}

// TestWhoLostTheRightRenewsNoLonger checks that after a denial the access review fails,
// and the renewal waits for an administrator.
func TestWhoLostTheRightRenewsNoLonger(t *testing.T) {
	s := sharedHub(t)
	dyn, kube := s.bootstrap(t)
	settled(t, func() error { return create(dyn, cluster("lost-right")) })
	csr, key := agentRequest(t, kube, "lost-right", "a")
	s.approve(t, csr.Name)
	a := &agent{}
	a.dyn, a.kube = s.issued(t, csr.Name, key)
	// An identity of a cluster that is not accepted may not even send a request.
	_, err := a.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{Limit: 1})
	require.Error(t, err)
	s.accept(t, "lost-right", true)
	s.await(t, "lost-right", "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
	settled(t, func() error {
		_, err := a.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{Limit: 1})
		return err
	})
	s.settle(t, a, "lost-right")
	s.accept(t, "lost-right", false)
	s.await(t, "lost-right", "is denied", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionFalse, ""))
	soon(t, func() bool {
		_, err := a.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{Limit: 1})
		return apierrors.IsForbidden(err)
	}, "the API server has not heard of the denial")
	// It is given the right to send requests, but not the right to renew.
	s.allowRequests(t, clusterv1.UserPrefix+"lost-right:a")
	var late *certificatesv1.CertificateSigningRequest
	settled(t, func() error {
		_, err := a.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{Limit: 1})
		return err
	})
	late, _ = agentRequest(t, a.kube, "lost-right", "a")
	s.register(t, "lost-right-after", "a")
	kind, _ := s.verdict(t, late.Name)
	require.Empty(t, kind)
}

// nextSecond waits until a new request has a later timestamp than another one: the API
// server counts in seconds.
func nextSecond(t testing.TB, csr *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	require.True(t, eventually(func() bool { return time.Now().Unix() > csr.CreationTimestamp.Unix() }))
}

func TestADenialByAPersonIsToldAndCleared(t *testing.T) {
	s := sharedHub(t)
	dyn, kube := s.bootstrap(t)
	settled(t, func() error { return create(dyn, cluster("unwanted")) })
	csr, _ := agentRequest(t, kube, "unwanted", "a")
	s.deny(t, csr.Name, "", "")
	mc := s.await(t, "unwanted", "reports it", conditionIs(clusterv1.ConditionCertificateRequestDenied, metav1.ConditionTrue, clusterv1.ReasonRequestDenied))
	require.Contains(t, findCondition(mc, clusterv1.ConditionCertificateRequestDenied).Message, "no reason was given")
	nextSecond(t, csr)
	second, _ := agentRequest(t, kube, "unwanted", "a")
	s.deny(t, second.Name, "KubectlDeny", "This CSR was denied by kubectl certificate deny.")
	s.await(t, "unwanted", "reports the newest", func(mc *clusterv1.ManagedCluster) bool {
		c := findCondition(mc, clusterv1.ConditionCertificateRequestDenied)
		return c != nil && bytes.Contains([]byte(c.Message), []byte(second.Name)) && bytes.Contains([]byte(c.Message), []byte("KubectlDeny"))
	})
	third, key := agentRequest(t, kube, "unwanted", "a")
	s.approve(t, third.Name)
	s.issued(t, third.Name, key)
	s.await(t, "unwanted", "is over it", conditionIs(clusterv1.ConditionCertificateRequestDenied, metav1.ConditionFalse, clusterv1.ReasonRequestIssued))
}

func TestARefusalOfTheSignerIsTold(t *testing.T) {
	s := sharedHub(t)
	dyn, kube := s.bootstrap(t)
	settled(t, func() error { return create(dyn, cluster("unsigned")) })
	csr, _ := agentRequest(t, kube, "unsigned", "a")
	api := s.kube.CertificatesV1().CertificateSigningRequests()
	settled(t, func() error {
		live, err := api.Get(t.Context(), csr.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		live.Status.Conditions = append(live.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure", Message: "wrong usages"})
		_, err = api.UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
		return err
	})
	mc := s.await(t, "unsigned", "reports it", conditionIs(clusterv1.ConditionCertificateRequestDenied, metav1.ConditionTrue, clusterv1.ReasonRequestFailed))
	require.Contains(t, findCondition(mc, clusterv1.ConditionCertificateRequestDenied).Message, "SignerValidationFailure: wrong usages")
}

// TestAFloodHoldsUpNobodyElse sends many forged requests under one name, with a join
// token and as the agent of another cluster. Other requests are still answered, and so
// are those of the flooded cluster's own agent: at once with this project's agent, and
// with Open Cluster Management's, which counts all requests with its label, after the hub
// has deleted them.
func TestAFloodHoldsUpNobodyElse(t *testing.T) {
	s := sharedHub(t)
	victim, other := s.register(t, "flooded", "a"), s.register(t, "calm", "a")
	_, kube := s.bootstrap(t)
	forged := func(i int) func(*forgery) {
		return func(f *forgery) {
			if i%2 == 0 {
				f.template.Subject.CommonName = fmt.Sprintf("%sflooded:x%d", clusterv1.UserPrefix, i)
			} else {
				f.template.DNSNames = []string{"x"}
			}
		}
	}
	for i := range 300 {
		forge(t, kube, "flooded", forged(i))
	}
	start := time.Now()
	s.settle(t, other, "calm")
	t.Logf("another cluster was answered after %s", time.Since(start))
	for i := range 20 {
		forge(t, other.kube, "flooded", forged(i))
	}
	start = time.Now()
	key, err := agentrequest.NewKey()
	require.NoError(t, err)
	want := agentrequest.Want{Name: "flooded-own", Labels: map[string]string{clusterv1.LabelClusterName: "flooded"}, Signer: clusterv1.SignerName, Key: key,
		Subject: pkix.Name{CommonName: clusterv1.UserPrefix + "flooded:a", Organization: []string{clusterv1.UserPrefix + "flooded", clusterv1.GroupManagedClusters}}}
	require.NoError(t, want.Create(t.Context(), victim.dyn, ofCluster("flooded")), "the flooded cluster's agent is held up")
	soon(t, func() bool { kind, _ := s.verdict(t, want.Name); return kind == "Approved" })
	t.Logf("the flooded cluster was answered after %s", time.Since(start))

	s.approveLater(t, 20*time.Second)
	left := func() []certificatesv1.CertificateSigningRequest {
		list, err := s.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{LabelSelector: ofCluster("flooded")})
		require.NoError(t, err)
		return list.Items
	}
	require.True(t, eventually(func() bool { return len(left()) < agentrequest.Max }), "%d requests hold up an agent of OCM", len(left()))
	require.NoError(t, s.kube.CertificatesV1().CertificateSigningRequests().DeleteCollection(context.Background(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: ofCluster("flooded")}))
}

// ofCluster selects the requests of a cluster as its agent does.
func ofCluster(name string) string {
	return clusterv1.LabelClusterName + "=" + name + ",!" + clusterv1.LabelAddOnName
}

// TestNobodyFillsTheShareOfAnotherCluster checks that requests of one cluster's agent
// under the name of another are reported and deleted within minutes, however few, and at
// once when they are many.
func TestNobodyFillsTheShareOfAnotherCluster(t *testing.T) {
	s := sharedHub(t)
	s.register(t, "share-victim", "a")
	evil := s.register(t, "share-evil", "a")
	count := func() int {
		list, err := s.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{LabelSelector: ofCluster("share-victim")})
		require.NoError(t, err)
		return len(list.Items)
	}
	had := count()
	for range agentrequest.Max {
		forge(t, evil.kube, "share-victim", func(f *forgery) { f.template.DNSNames = []string{"x"} })
	}
	require.True(t, eventually(func() bool { return count() < agentrequest.Max }), "an agent of OCM would not renew")
	soon(t, func() bool {
		list, err := s.kube.EventsV1().Events("share-victim").List(t.Context(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "ForeignCertificateRequest" && strings.Contains(e.Note, clusterv1.UserPrefix+"share-evil:a")
		})
	}, "the requester is not disclosed")
	s.approveLater(t, 3*time.Minute)
	require.True(t, eventually(func() bool { return count() == had }), "%d are left", count())
}

// TestAFloodOverManyNamesIsBounded sends requests for more names than the hub keeps
// requests for, none of which has a ManagedCluster.
func TestAFloodOverManyNamesIsBounded(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "above", "a")
	token := s.joinToken(t, "", false)
	const kept, sent = 500, 530
	for i := range sent {
		forge(t, token.kube, fmt.Sprintf("stray%d", i), func(*forgery) {})
	}
	s.settle(t, a, "above")
	api := s.kube.CertificatesV1().CertificateSigningRequests()
	left := map[string]bool{}
	require.True(t, eventually(func() bool {
		list, err := api.List(t.Context(), metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName})
		require.NoError(t, err)
		clear(left)
		for _, csr := range list.Items {
			if name := csr.Labels[clusterv1.LabelClusterName]; strings.HasPrefix(name, "stray") {
				left[name] = true
			}
		}
		return len(left) <= kept
	}), "the oldest go")
	require.True(t, left[fmt.Sprintf("stray%d", sent-1)], "the newest stays")
	require.False(t, left["stray0"])
	require.NoError(t, api.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: clusterv1.LabelClusterName + " in (" + strings.Join(slices.Sorted(maps.Keys(left)), ",") + ")",
	}))
}
