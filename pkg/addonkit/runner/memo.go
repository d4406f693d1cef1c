// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/deploy"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// maxAnswers is the number of instances whose answers are kept. Beyond it all answers are
// dropped and asked for again when needed.
const maxAnswers = 16384

// inputsOf digests what an add-on's answers about an instance depend on; false if the
// add-on does not say, and for an instance that is being deleted, for which it is always
// called.
func inputsOf(addOn addonkit.AddOn, i addonkit.Instance) (digest.Sum, bool) {
	a, ok := addOn.(addonkit.Traced)
	if !ok || i.Cluster == nil || i.AddOn.DeletionTimestamp != nil {
		return digest.Sum{}, false
	}
	text, ok := a.Inputs(i)
	if !ok {
		return digest.Sum{}, false
	}
	return digest.OfParts(string(i.AddOn.UID), text), true
}

// drawn is what is kept of a rendering: no manifests.
type drawn struct {
	// Of has the UID of the instance, which separates strings shared by many instances from
	// those of one instance that is packed often.
	Of        metav1.ObjectMeta
	Manifests []deploy.Outline
	Configs   []workv1.ManifestConfigOption
}

// asked is what an add-on needs on the hub.
type asked struct {
	Of            metav1.ObjectMeta
	Registrations []addonv1alpha1.RegistrationConfig
	Namespace     string
	Permissions   []addonkit.Permission
}

// memo holds packed answers of one kind, by instance. Its zero value is ready once words is
// set; it is safe for concurrent use.
type memo[T any] struct {
	words *packed.Dictionary

	mu   sync.Mutex
	held map[reconcile.Key]answer
}

// answer is a packed answer, and the digest of what it depends on.
type answer struct {
	from digest.Sum
	data string
}

// recall returns the answer for an instance if it depends on the same inputs.
func (m *memo[T]) recall(key reconcile.Key, from digest.Sum) (*T, bool) {
	m.mu.Lock()
	have, ok := m.held[key]
	m.mu.Unlock()
	if !ok || have.from != from {
		return nil, false
	}
	out := new(T)
	m.words.Unpack(have.data, out)
	return out, true
}

// hold keeps an answer.
func (m *memo[T]) hold(key reconcile.Key, from digest.Sum, what *T) {
	data := m.words.Pack(what)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil || len(m.held) >= maxAnswers {
		m.held = map[reconcile.Key]answer{}
	}
	m.held[cloned(key)] = answer{from, data}
}

// forget drops the answer for an instance.
func (m *memo[T]) forget(key reconcile.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, key)
}
