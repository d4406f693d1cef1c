// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// reviewTimeout bounds the reviews of one object.
const reviewTimeout = 15 * time.Second

// applyVerbs are required for every object; delete as well where the work owns it.
var applyVerbs = []string{"create", "update", "patch", "get"}

var accessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}

// Object is an object that an executor is to apply.
type Object struct {
	// Resource, Namespace and Name identify it.
	Resource        schema.GroupVersionResource
	Namespace, Name string
	// Owned is set when the object is deleted with the work.
	Owned bool
}

// grants reports whether the object grants rights.
func (o Object) grants() bool {
	return o.Resource.Group == groupRBAC && slices.Contains(rbacResources, o.Resource.Resource)
}

// Config holds the dependencies of a Checker.
type Config struct {
	// Spoke is the agent's own client configuration for the managed cluster.
	Spoke *rest.Config
	// Metadata reads metadata only; roles and bindings are watched with it.
	Metadata dynamic.Interface
	// Wake is called with each work whose executor's rights changed.
	Wake func(work string)
	// Clock times the comparisons of rules.
	Clock clock.WithTicker
	// Log logs what may not be watched.
	Log logr.Logger
}

// Checker checks what executors may do. Its methods are safe for concurrent use.
type Checker struct {
	c      Config
	client dynamic.Interface
	base   http.RoundTripper

	mu sync.Mutex
	// ctx is that of Run; watches start while it is set.
	ctx     context.Context
	running sync.WaitGroup
	// works are the scopes of each work that has an executor.
	works  map[string][]scope
	scopes map[scope]*rules
	// epochs counts changes of rules, over all scopes.
	epochs  uint64
	watches []*roleWatch
	// marked are the scopes whose rules have to be compared; news signals new ones.
	marked map[scope]bool
	news   chan struct{}
}

// New returns a Checker that watches nothing yet.
func New(c Config) (*Checker, error) {
	client, err := dynamic.NewForConfig(c.Spoke)
	if err != nil {
		return nil, fmt.Errorf("making the client for access reviews: %w", err)
	}
	base, err := rest.TransportFor(c.Spoke)
	if err != nil {
		return nil, fmt.Errorf("making the connection for executors: %w", err)
	}
	return &Checker{
		c: c, client: client, base: base,
		works: map[string][]scope{}, scopes: map[scope]*rules{}, marked: map[scope]bool{}, news: make(chan struct{}, 1),
	}, nil
}

// As returns a client whose requests are authorized by the rights of the account. All
// such clients share one connection.
func (c *Checker) As(a Account) (dynamic.Interface, error) {
	if a.IsAgent() {
		return c.client, nil
	}
	wrapped := transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{UserName: a.User()}, c.base)
	client, err := dynamic.NewForConfigAndClient(c.c.Spoke, &http.Client{Transport: wrapped, Timeout: c.c.Spoke.Timeout})
	if err != nil {
		return nil, fmt.Errorf("making the client of executor %s: %w", a, err)
	}
	return client, nil
}

// Check checks whether the account has every right needed to apply the object. The error
// is a *DeniedError if it has not; any other error means that the check failed.
func (c *Checker) Check(ctx context.Context, a Account, o Object) error {
	verbs := applyVerbs
	if o.Owned {
		verbs = append(slices.Clone(verbs), "delete")
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	may, errs := make([]bool, len(verbs)), make([]error, len(verbs))
	var asking sync.WaitGroup
	for i, verb := range verbs {
		asking.Go(func() { may[i], errs[i] = c.allowed(ctx, a, verb, o) })
	}
	asking.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var missing []string
	for i, verb := range verbs {
		if !may[i] {
			missing = append(missing, verb)
		}
	}
	if len(missing) > 0 {
		return &DeniedError{account: a, object: o, missing: missing}
	}
	return nil
}

// MayDelete checks whether the account may delete the object.
func (c *Checker) MayDelete(ctx context.Context, a Account, o Object) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	return c.allowed(ctx, a, "delete", o)
}

func (c *Checker) allowed(ctx context.Context, a Account, verb string, o Object) (bool, error) {
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": accessReviews.GroupVersion().String(), "kind": "SubjectAccessReview",
		"spec": map[string]any{
			"user": a.User(), "groups": a.groups(),
			"resourceAttributes": map[string]any{
				"verb": verb, "group": o.Resource.Group, "version": o.Resource.Version, "resource": o.Resource.Resource,
				"namespace": o.Namespace, "name": o.Name,
			},
		},
	}}
	answer, err := c.client.Resource(accessReviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether executor %s may %s %s %s: %w", a, verb, o.Resource.GroupResource(), o.Name, err)
	}
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, err
}

// Rehearse creates a role or binding in a dry run as the account, which finds an
// escalation even where the object exists and would not change; other kinds grant
// nothing. The error is a *DeniedError. Any other problem with the object shows in the
// write itself.
func (c *Checker) Rehearse(ctx context.Context, a Account, o Object, manifest *unstructured.Unstructured) error {
	if !o.grants() {
		return nil
	}
	client, err := c.As(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	_, err = client.Resource(o.Resource).Namespace(o.Namespace).Create(ctx, manifest.DeepCopy(),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: workv1.DefaultFieldManager})
	var denied *DeniedError
	if errors.As(Refused(err, a, o), &denied) {
		return denied
	}
	return nil
}
