// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/path"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Bounds on the cost and the results of one object.
const (
	// MaxRawLength is the limit of the ManifestWork schema for a value of type JsonRaw,
	// in bytes; a larger limit is not honoured.
	MaxRawLength = 1024
	// MaxString bounds a value of type String, in bytes.
	MaxString = 16 << 10
	// MaxValues bounds the values of one object.
	MaxValues = 100
	// defaultMaxBytes bounds names and values of one object together, in bytes.
	defaultMaxBytes = 64 << 10
	// maxSteps bounds the work for one path, allSteps that for all paths of one object. A
	// step is about one visited field or element, and takes about 50 ns.
	maxSteps = 20_000
	allSteps = 10 * maxSteps
	// maxErrors is how many errors are reported in full.
	maxErrors = 5
)

// Options control and bound what Evaluate returns.
type Options struct {
	// RawJSON returns maps, lists, fractions and several matches as JSON text; it is the
	// feature gate RawFeedbackJsonString.
	RawJSON bool
	// MaxRawLength bounds such a text, in bytes. Zero and values above the constant
	// MaxRawLength mean MaxRawLength.
	MaxRawLength int
	// MaxBytes bounds names and values together, in bytes. Zero means
	// defaultMaxBytes.
	MaxBytes int
}

// wellKnown are the built-in values by kind.
var wellKnown = map[schema.GroupVersionKind][]workv1.JSONPath{
	{Group: "apps", Version: "v1", Kind: "Deployment"}: {
		{Name: "ReadyReplicas", Path: ".status.readyReplicas"},
		{Name: "Replicas", Path: ".status.replicas"},
		{Name: "AvailableReplicas", Path: ".status.availableReplicas"},
	},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}: {
		{Name: "NumberReady", Path: ".status.numberReady"},
		{Name: "DesiredNumberScheduled", Path: ".status.desiredNumberScheduled"},
		{Name: "NumberAvailable", Path: ".status.numberAvailable"},
	},
	{Group: "batch", Version: "v1", Kind: "Job"}: {
		{Name: "JobComplete", Path: `.status.conditions[?(@.type=="Complete")].status`},
		{Name: "JobSucceeded", Path: ".status.succeeded"},
	},
	{Version: "v1", Kind: "Pod"}: {
		{Name: "PodReady", Path: `.status.conditions[?(@.type=="Ready")].status`},
		{Name: "PodPhase", Path: ".status.phase"},
	},
}

// Evaluate reads the values that rules ask for from a live object. A path that matches
// nothing gives no value and no error. The error names every value that could not be
// read, with its path and without content of the object; the other values are returned
// nevertheless. The object is not changed.
func Evaluate(object *unstructured.Unstructured, rules []workv1.FeedbackRule, o Options) ([]workv1.FeedbackValue, error) {
	r := newReader(object, o)
	gvk := object.GroupVersionKind()
	for _, rule := range rules {
		switch rule.Type {
		case workv1.FeedbackRuleTypeWellKnownStatus:
			known, ok := wellKnown[gvk]
			if !ok {
				r.fail("cannot find the wellknown statuses for resource with gvk %s; use the type JSONPaths", gvk)
			}
			for _, p := range known {
				r.read(p)
			}
		case workv1.FeedbackRuleTypeJSONPaths:
			for _, p := range rule.JSONPaths {
				if p.Version != "" && p.Version != gvk.Version {
					r.fail("the path %s is for version %s and the object has version %s; correct jsonPaths.version", quote(p.Path), quote(p.Version), gvk.Version)
					continue
				}
				r.read(p)
			}
		default:
			r.fail("unknown type %s of a feedback rule; use WellKnownStatus or JSONPaths", quote(string(rule.Type)))
		}
	}
	return r.values, r.err()
}

// reader collects the values and errors of one object.
type reader struct {
	object map[string]any
	raw    bool
	limit  int
	room   int
	steps  int
	all    int
	secret bool

	values []workv1.FeedbackValue
	named  map[string]bool
	errors []string
	more   int
}

func newReader(object *unstructured.Unstructured, o Options) *reader {
	r := &reader{
		object: object.Object, limit: o.MaxRawLength, room: cmp.Or(o.MaxBytes, defaultMaxBytes), all: allSteps,
		named: map[string]bool{}, secret: manifest.IsSecret(object.GetAPIVersion(), object.GetKind()),
	}
	r.raw = o.RawJSON && !r.secret
	if r.limit <= 0 || r.limit > MaxRawLength {
		r.limit = MaxRawLength
	}
	return r
}

// read adds the value of one path.
func (r *reader) read(p workv1.JSONPath) {
	if len(r.values) == MaxValues {
		r.fail("more than %d values are requested of one object; the value %s is left out", MaxValues, quote(p.Name))
		return
	}
	matches, err := r.evaluatePath(p.Path)
	if err != nil {
		r.fail("the path %s of the value %s: %s", quote(p.Path), quote(p.Name), err)
		return
	}
	value, size, err := r.valueOf(matches)
	size += len(p.Name)
	switch {
	case err != nil:
		r.fail("the path %s of the value %s: %s", quote(p.Path), quote(p.Name), err)
	case value == nil:
	case r.named[p.Name]:
		r.fail("the name %s is given to two values, the first is reported; give the value at %s a name of its own", quote(p.Name), quote(p.Path))
	case size > r.room:
		r.fail("the value %s takes %d bytes, but only %d are left; ask for less in one work", quote(p.Name), size, r.room)
	default:
		r.room -= size
		r.named[p.Name] = true
		r.values = append(r.values, workv1.FeedbackValue{Name: p.Name, FieldValue: *value})
	}
}

// maxPath bounds a path, in bytes.
const maxPath = 1024

// errCost ends the evaluation of a path that costs too much.
var errCost = fmt.Errorf(
	"it visits more than %d fields, or all paths of the object more than %d; name the way to the value instead of searching for it",
	maxSteps, allSteps,
)

// evaluatePath evaluates a path over the object.
func (r *reader) evaluatePath(text string) ([]any, error) {
	expression, err := parse(text)
	if err != nil {
		return nil, err
	}
	granted := min(maxSteps, r.all)
	r.steps = granted
	var out []any
	err = expression.Each(r.object, r.spend, func(m path.Match) error {
		out = append(out, m.Value)
		return r.spend(1)
	})
	r.all -= granted - max(r.steps, 0)
	return out, err
}

// spend subtracts steps from the bound.
func (r *reader) spend(steps int) error {
	if r.steps -= steps; r.steps < 0 {
		return errCost
	}
	return nil
}

// parse parses a path: one expression, without braces.
func parse(text string) (*path.Expression, error) {
	if len(text) > maxPath {
		return nil, fmt.Errorf("it has %d bytes, more than %d; shorten it", len(text), maxPath)
	}
	return path.Kubectl(text)
}

// CheckPath returns why a path can never give a value, or nil if it can.
func CheckPath(text string) error {
	_, err := parse(text)
	return err
}

func (r *reader) fail(text string, args ...any) {
	if len(r.errors) == maxErrors {
		r.more++
		return
	}
	r.errors = append(r.errors, fmt.Sprintf(text, args...))
}

// err joins the errors.
func (r *reader) err() error {
	switch len(r.errors) {
	case 0:
		return nil
	case 1:
		return errors.New(r.errors[0])
	}
	text := strings.Join(r.errors, "; ")
	if r.more > 0 {
		text += fmt.Sprintf("; and %d more", r.more)
	}
	return fmt.Errorf("[%s]", text)
}

// maxQuoted bounds what an error quotes of a rule, in bytes.
const maxQuoted = 128

// quote returns text of a rule for an error.
func quote(text string) string {
	return strconv.Quote(excerpt.Of(text, maxQuoted))
}
