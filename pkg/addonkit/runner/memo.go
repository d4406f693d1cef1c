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

// maxAnswers bounds of how many instances answers are known. When there are more, all
// are forgotten, and asked for again when they are needed.
const maxAnswers = 16384

// inputsOf digests what the answers of an add-on about an instance follow from; false where the add-on does not tell them, and for
// one that is on its way out, which is asked.
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

// drawn is what is left of a rendering: no manifest.
type drawn struct {
	// Of has the UID of the instance, by which words of many instances are told from
	// those of one that is packed often.
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

// memo holds answers of one kind, packed, by instance. The zero value but for words is
// ready; it is safe for concurrent use.
type memo[T any] struct {
	words *packed.Dictionary

	mu   sync.Mutex
	held map[reconcile.Key]answer
}

// answer is what was answered, and what it follows from.
type answer struct {
	from digest.Sum
	data string
}

// recall returns the answer for an instance, if it follows from the same.
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

// forget drops what is known of an instance.
func (m *memo[T]) forget(key reconcile.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, key)
}
