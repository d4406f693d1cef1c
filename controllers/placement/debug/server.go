// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	exactjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/review"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule/verdict"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Port of the endpoint in a pod; the Service exposes it on the port of the API.
const Port = 9444

// urlPath is the prefix of the endpoint; NAMESPACE/NAME of a placement follows it.
const urlPath = "/debug/placements/"

// Patience is how long delivering an answer may take.
const Patience = time.Minute

const (
	// maxBody bounds a placement that is sent, in bytes.
	maxBody = 1 << 20
	// maxWaiting is how many requests are handled at once; others wait.
	maxWaiting = 8
	// requestTimeout is how long one request may take, including the wait for its turn.
	requestTimeout = 20 * time.Second
)

// Fleet is the data that placements are decided on.
type Fleet interface {
	// Placement returns the stored placement of that name, or nil if there is none.
	Placement(ctx context.Context, key schedule.Key) (*clusterv1beta1.Placement, error)
	// Explain explains what the placement selects and why. The placement is not kept.
	Explain(ctx context.Context, p *clusterv1beta1.Placement) (verdict.Explanation, error)
}

// ErrAway is returned by a Fleet in a process that does not run the loops now.
var ErrAway = errors.New("this replica of the hub does not run the controllers now; try again, or ask the leader")

// ErrTooMuch is returned by a Fleet where an explanation would be too long or take too
// long.
var ErrTooMuch = errors.New("explaining this placement is too much work for the hub; use kubectl ocm placement explain or simulate, which work on your machine")

// Options of a Server.
type Options struct {
	// Client checks who the caller is and what they may do.
	Client dynamic.Interface
	// Fleet explains.
	Fleet Fleet
	// Log receives errors that callers are not told; the zero value logs nothing.
	Log logr.Logger
}

// Server answers the requests.
type Server struct {
	o     Options
	turns chan struct{}
	// one is held by the request that is being simulated.
	one chan struct{}
}

var _ http.Handler = (*Server)(nil)

// NewServer returns a Server.
func NewServer(o Options) *Server {
	return &Server{o: o, turns: make(chan struct{}, maxWaiting), one: make(chan struct{}, 1)}
}

// answer is an error with its HTTP code; its whole text is meant for the caller.
type answer struct {
	code int
	text string
}

func (a *answer) Error() string { return a.text }

func fail(code int, format string, args ...any) error {
	return &answer{code, fmt.Sprintf(format, args...)}
}

// ServeHTTP answers one request. Paths are used as they are, without redirects.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	explanation, err := s.request(ctx, w, r)
	var told *answer
	switch {
	case err == nil:
		s.write(w, explanation)
		return
	case errors.As(err, &told):
	case errors.Is(err, ErrTooMuch):
		told = &answer{http.StatusUnprocessableEntity, err.Error()}
	case errors.Is(err, ErrAway):
		told = &answer{http.StatusServiceUnavailable, err.Error()}
	case ctx.Err() != nil:
		told = &answer{http.StatusServiceUnavailable, "too many requests are being answered; try again"}
	default:
		s.o.Log.Error(err, "A placement cannot be explained")
		told = &answer{http.StatusInternalServerError, err.Error()}
	}
	if told.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if told.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(told.code)
	s.write(w, map[string]string{"error": told.text})
}

func (s *Server) write(w io.Writer, body any) {
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.o.Log.V(1).Info("Answer was not delivered", "error", err.Error())
	}
}

// request finds out who asks for what, and whether they may.
func (s *Server) request(ctx context.Context, w http.ResponseWriter, r *http.Request) (verdict.Explanation, error) {
	var none verdict.Explanation
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		return none, fail(http.StatusMethodNotAllowed, "method %s not allowed", r.Method)
	}
	done, err := acquire(ctx, s.turns)
	if err != nil {
		return none, err
	}
	defer done()
	user, err := s.caller(ctx, r)
	if err != nil {
		return none, err
	}
	p, err := s.wanted(ctx, w, r, user)
	if err != nil {
		return none, err
	}
	done, err = acquire(ctx, s.one)
	if err != nil {
		return none, err
	}
	defer done()
	out, err := s.o.Fleet.Explain(ctx, p)
	// The right to use the sets of one namespace reveals nothing about clusters in
	// others.
	out.Clusters = slices.DeleteFunc(out.Clusters, func(c schedule.ClusterReport) bool { return c.Stage == schedule.StageNotInSet })
	return out, err
}

// acquire waits for a free place.
func acquire(ctx context.Context, places chan struct{}) (done func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// caller identifies the caller, and checks that they may request the path.
func (s *Server) caller(ctx context.Context, r *http.Request) (*authenticationv1.UserInfo, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, fail(http.StatusUnauthorized, "user information not found in request context: send a bearer token that this cluster accepts")
	}
	user, ok, err := review.Bearer(ctx, s.o.Client, token)
	switch {
	case err != nil:
		return nil, s.undecided(err)
	case !ok:
		return nil, fail(http.StatusUnauthorized, "user information not found in request context: this cluster does not accept the bearer token")
	}
	verb := strings.ToLower(r.Method)
	right := review.Right{Path: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: verb}}
	return &user, s.require(ctx, &user, right, fmt.Sprintf("%s %.200q", verb, r.URL.Path))
}

// require returns a 403 answer when the user lacks the right.
func (s *Server) require(ctx context.Context, user *authenticationv1.UserInfo, right review.Right, what string) error {
	allowed, why, err := review.Access(ctx, s.o.Client, user, right)
	switch {
	case err != nil:
		return s.undecided(err)
	case !allowed:
		return fail(http.StatusForbidden, "user does not have permission to %s: %.500s", what, cmp.Or(why, "nothing allows it"))
	}
	return nil
}

// undecided is the answer where the cluster cannot tell what a user may do.
func (s *Server) undecided(err error) error {
	s.o.Log.Error(err, "Permissions cannot be checked")
	return fail(http.StatusInternalServerError, "failed to check permissions: %.500s", err.Error())
}

// wanted returns the placement that a request is about.
func (s *Server) wanted(ctx context.Context, w http.ResponseWriter, r *http.Request, user *authenticationv1.UserInfo) (*clusterv1beta1.Placement, error) {
	if r.Method == http.MethodPost {
		p, err := readPlacement(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			return nil, err
		}
		return p, s.require(ctx, user, right("create", p.Namespace, ""), "create placements in namespace "+p.Namespace)
	}
	key, err := parseKey(r.URL.Path)
	if err != nil {
		return nil, err
	}
	if err := s.require(ctx, user, right("get", key.Namespace, key.Name), "get placements in namespace "+key.Namespace); err != nil {
		return nil, err
	}
	p, err := s.o.Fleet.Placement(ctx, key)
	if err == nil && p == nil {
		err = fail(http.StatusNotFound, "placement '%s' not found", key.Name)
	}
	return p, err
}

func right(verb, namespace, name string) review.Right {
	return review.Right{Resource: &authorizationv1.ResourceAttributes{
		Group: clusterv1beta1.GroupName, Version: clusterv1beta1.GroupVersion.Version, Resource: "placements", Verb: verb, Namespace: namespace, Name: name,
	}}
}

// parseKey reads the placement's namespace and name from a path.
func parseKey(path string) (schedule.Key, error) {
	rest, ok := strings.CutPrefix(path, urlPath)
	namespace, name, both := strings.Cut(rest, "/")
	switch {
	case !ok || !both || namespace == "" || name == "":
		return schedule.Key{}, fail(http.StatusBadRequest, "invalid debug path: namespace and name required")
	case len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0:
		return schedule.Key{}, fail(http.StatusBadRequest, "unexpected key format: %.300q", rest)
	}
	return schedule.Key{Namespace: namespace, Name: name}, nil
}

// readPlacement decodes a placement from a request body.
func readPlacement(body io.Reader) (*clusterv1beta1.Placement, error) {
	raw, err := io.ReadAll(body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fail(http.StatusBadRequest, "request body too large: at most %d bytes are read", maxBody)
	case err != nil:
		return nil, fail(http.StatusBadRequest, "failed to read the request body: %.200s", err.Error())
	}
	p := &clusterv1beta1.Placement{}
	if err := exactjson.Unmarshal(raw, p); err != nil {
		return nil, fail(http.StatusBadRequest, "failed to unmarshal placement JSON: %.500s", err.Error())
	}
	switch kind := p.GroupVersionKind(); {
	case !kind.Empty() && kind != clusterv1beta1.GroupVersion.WithKind("Placement"):
		return nil, fail(
			http.StatusBadRequest,
			"failed to unmarshal placement JSON: it is a %.100q of %.100q, and a Placement of %s is needed", p.Kind,
			p.APIVersion, clusterv1beta1.GroupVersion,
		)
	case len(validation.IsDNS1123Label(p.Namespace)) > 0:
		return nil, fail(http.StatusBadRequest, "failed to unmarshal placement JSON: metadata.namespace %.100q is no namespace", p.Namespace)
	}
	return p, nil
}
