// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// Server is an in-memory API server.
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	objects  map[string]*unstructured.Unstructured
	version  int
	changes  []string
	requests int
	watchers map[chan event]string
	created  string
	// busy is how many more writes another writer overtakes.
	busy int
	// alive is asked before each change.
	alive func() bool
}

type event struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
	key    string
}

// New starts a server with the objects in documents, which are YAML. Objects without a
// creation time get created (RFC 3339).
func New(t testing.TB, created string, documents ...string) *Server {
	t.Helper()
	s := &Server{objects: map[string]*unstructured.Unstructured{}, watchers: map[chan event]string{}, created: created}
	for _, text := range documents {
		objects, err := objectsIn(text)
		require.NoError(t, err)
		for _, u := range objects {
			s.store(pathOf(u), u.DeepCopy())
		}
	}
	own, err := certificate()
	require.NoError(t, err)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Kubeconfig writes a kubeconfig file with one context per server, and returns its path.
func Kubeconfig(t testing.TB, servers map[string]*Server) string {
	t.Helper()
	kc := clientcmdapi.NewConfig()
	for name, s := range servers {
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		kc.Clusters[name] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: ca}
		kc.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		kc.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "administrator"}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*kc, path))
	require.NoError(t, os.Chmod(path, 0o600))
	return path
}

// Changes returns the requests that could change something, except server-side dry runs.
func (s *Server) Changes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changes)
}

// Objects returns the stored objects by collection, namespace and name.
func (s *Server) Objects() map[string]*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]*unstructured.Unstructured{}
	for key, u := range s.objects {
		out[key] = u.DeepCopy()
	}
	return out
}

// WhileAlive asks before each change, except server-side dry runs, whether the process that sent it is
// alive. That of a dead one is neither made nor answered.
func (s *Server) WhileAlive(alive func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = alive
}

// Requests returns how many requests were sent so far.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// request is a parsed request.
type request struct {
	collection, name, subresource string
	dry                           bool
}

// parse splits a path: /api/v1 or /apis/GROUP/VERSION, a namespace, the resource, a
// name, a subresource.
func parse(path string) (request, bool) {
	words := strings.Split(strings.Trim(path, "/"), "/")
	head := 2
	if words[0] == "apis" {
		head = 3
	}
	if len(words) <= head || (words[0] != "api" && words[0] != "apis") {
		return request{}, false
	}
	rest := words[head:]
	prefix := "/" + strings.Join(words[:head], "/")
	namespace := ""
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	r := request{collection: prefix + "/" + rest[0] + "|" + namespace}
	if len(rest) > 1 {
		r.name = rest[1]
	}
	if len(rest) > 2 {
		r.subresource = rest[2]
	}
	return r, true
}

func (r request) key() string { return r.collection + "|" + r.name }

func (s *Server) serve(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	w.Header()["Date"] = nil // tests use the clock of the program only
	switch q.URL.Path {
	case "/version":
		answer(w, http.StatusOK, map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
		return
	case "/apis/certificates.k8s.io/v1", "/apis/cluster.open-cluster-management.io/v1":
		s.discovery(w, q)
		return
	case "/api", "/apis":
		s.kinds(w, q.URL.Path)
		return
	}
	r, ok := parse(q.URL.Path)
	if !ok {
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource", "")
		return
	}
	if q.Method == http.MethodGet {
		s.read(w, q, r)
	} else {
		s.change(w, q, r)
	}
}

// discovery serves the groups that the plugin asks for. The server is a hub if it has
// a ClusterManager.
func (s *Server) discovery(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hub := false
	for key := range s.objects {
		hub = hub || strings.Contains(key, "clustermanagers")
	}
	if !hub && strings.Contains(q.URL.Path, "open-cluster") {
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource", "")
		return
	}
	answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "resources": []any{map[string]any{"name": "managedclusters"}}})
}

// change stores, merges or deletes one object.
func (s *Server) change(w http.ResponseWriter, q *http.Request, r request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error(), r.name)
		return
	}
	r.dry = q.URL.Query().Get("dryRun") != ""
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.dry && !strings.Contains(r.collection, "subjectaccessreviews") && !strings.Contains(r.collection, "selfsubject") {
		if s.alive != nil && !s.alive() {
			panic(http.ErrAbortHandler)
		}
		s.changes = append(s.changes, q.Method+" "+q.URL.Path)
	}
	if q.Method == http.MethodDelete {
		s.delete(w, r)
		return
	}
	var fields map[string]any
	// Most bodies are JSON, which the parser of YAML would read, but much slower.
	if err = json.Unmarshal(body, &fields); err != nil {
		err = yaml.Unmarshal(body, &fields)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error(), r.name)
		return
	}
	s.write(w, q.Method, r, fields)
}

// delete removes one object.
func (s *Server) delete(w http.ResponseWriter, r request) {
	if s.objects[r.key()] == nil {
		refuse(w, http.StatusNotFound, "NotFound", r.name+" not found", r.name)
		return
	}
	if !r.dry {
		s.remove(r.key())
	}
	answer(w, http.StatusOK, map[string]any{"kind": "Status", "status": "Success"})
}

// Busy has another writer overtake the next n writes that carry a resourceVersion.
func (s *Server) Busy(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = n
}

// isOvertaken reports whether a write has an outdated resourceVersion.
func (s *Server) isOvertaken(r request, u *unstructured.Unstructured) bool {
	live, wanted := s.objects[r.key()], u.GetResourceVersion()
	if live == nil || wanted == "" {
		return false
	}
	if s.busy > 0 {
		s.busy--
		s.store(r.key(), live.DeepCopy())
	}
	return s.objects[r.key()].GetResourceVersion() != wanted
}

// write stores or merges one object.
func (s *Server) write(w http.ResponseWriter, method string, r request, fields map[string]any) {
	live := s.objects[r.key()]
	u := &unstructured.Unstructured{Object: fields}
	if s.isOvertaken(r, u) {
		refuse(w, http.StatusConflict, "Conflict", r.name+" has been modified", r.name)
		return
	}
	switch status := review(method, r, fields); {
	case status != nil:
		fields["status"] = status
		answer(w, http.StatusCreated, fields)
		return
	case method == http.MethodPost:
		r.name = u.GetName()
		live = s.objects[r.key()]
	case method == http.MethodPatch && live != nil:
		u = live.DeepCopy()
		u.Object = merged(u.Object, fields)
	}
	if live != nil && fmt.Sprint(live.Object) == fmt.Sprint(u.Object) {
		answer(w, http.StatusOK, live.Object)
		return
	}
	if webhook := s.webhook(r); r.dry && method == http.MethodPost && webhook != "" {
		refuse(w, http.StatusBadRequest, "BadRequest", fmt.Sprintf("admission webhook %q denied the request: it is no such object", webhook), r.name)
		return
	}
	if !r.dry {
		s.store(r.key(), u)
	}
	answer(w, http.StatusOK, u.Object)
}

// review returns the status of a review, an object that is created but not stored; nil
// for other requests.
func review(method string, r request, fields map[string]any) map[string]any {
	switch {
	case method != http.MethodPost:
		return nil
	case strings.Contains(r.collection, "/subjectaccessreviews"):
		verb, _, _ := unstructured.NestedString(fields, "spec", "resourceAttributes", "verb")
		user, _, _ := unstructured.NestedString(fields, "spec", "user")
		return map[string]any{"allowed": verb == "get" || strings.Contains(user, "bootstrap")} // who asks to join may do that
	case strings.Contains(r.collection, "selfsubject") || r.subresource == "token":
		return map[string]any{"allowed": true, "userInfo": map[string]any{"username": "admin"}, "token": "e30.eyJqdGkiOiIxIn0.e30"}
	}
	return nil
}

// webhook returns the name of the webhook configuration for a request, "" if there is
// none. A probe of admission is a dry-run creation, which the webhook denies.
func (s *Server) webhook(r request) string {
	path, _, _ := strings.Cut(r.collection, "|")
	kind := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], "s")
	for key, u := range s.objects {
		if strings.Contains(key, "/validatingwebhookconfigurations|") && strings.HasPrefix(u.GetName(), kind+"validators.") {
			return u.GetName()
		}
	}
	return ""
}

// store stores an object and notifies the watchers.
func (s *Server) store(key string, u *unstructured.Unstructured) {
	s.version++
	kind := "MODIFIED"
	if s.objects[key] == nil {
		kind = "ADDED"
		if u.GetUID() == "" {
			u.SetUID(types.UID(fmt.Sprintf("uid-0000%08d", s.version)))
		}
		if created, _, _ := unstructured.NestedString(u.Object, "metadata", "creationTimestamp"); created == "" {
			_ = unstructured.SetNestedField(u.Object, s.created, "metadata", "creationTimestamp")
		}
	}
	u.SetResourceVersion(strconv.Itoa(s.version))
	if u.GetKind() == "CustomResourceDefinition" {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
	}
	s.objects[key] = u
	s.notify(event{kind, u.Object, key})
}

func (s *Server) remove(key string) {
	u := s.objects[key]
	delete(s.objects, key)
	s.version++
	u.SetResourceVersion(strconv.Itoa(s.version))
	s.notify(event{"DELETED", u.Object, key})
}

func (s *Server) notify(e event) {
	for c, prefix := range s.watchers {
		if strings.HasPrefix(e.key, prefix) {
			select {
			case c <- e:
			default:
			}
		}
	}
}

// merged returns base with fields merged into it; null removes a field.
func merged(base, fields map[string]any) map[string]any {
	out := maps.Clone(base)
	for k, v := range fields {
		b, okB := out[k].(map[string]any)
		f, okF := v.(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case okB && okF:
			out[k] = merged(b, f)
		default:
			out[k] = v
		}
	}
	return out
}
