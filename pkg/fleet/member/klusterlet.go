// SPDX-License-Identifier: Apache-2.0

package member

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

const namespacePrefix = "open-cluster-management-"

// maxKlusterlet is the longest name of a further Klusterlet: the API allows 57 characters for the
// namespace that is named after it.
const maxKlusterlet = 57 - len(namespacePrefix)

// NamespaceFor returns the namespace in which join installs the agent of a Klusterlet. Each
// further agent of a cluster has a namespace of its own.
func NamespaceFor(klusterlet string) string {
	if klusterlet == operatorv1.DefaultKlusterletName {
		return operatorv1.NamespaceAgent
	}
	return namespacePrefix + klusterlet
}

// HostedFor returns the name of the Klusterlet with which a cluster joins whose agent is hosted
// elsewhere. A long name of a cluster is cut, and told from others by its digest.
func HostedFor(cluster string) string {
	const prefix = operatorv1.DefaultKlusterletName + "-"
	if name := prefix + cluster; len(name) <= maxKlusterlet {
		return name
	}
	digest := sha256.Sum256([]byte(cluster))
	end := "-" + hex.EncodeToString(digest[:4])
	return strings.TrimRight(prefix+cluster[:maxKlusterlet-len(prefix+end)], "-") + end
}

// CheckHosted returns an error of kind Usage when the agent of a Klusterlet with this name cannot
// be hosted.
func CheckHosted(name string) error {
	if operatorv1.CanBeHosted(name) {
		return CheckKlusterlet(name)
	}
	return fleet.Misuse(fmt.Sprintf("%q cannot be the name of the klusterlet of a hosted agent", name),
		"the agent runs in a namespace with this name, which is removed with it", fleet.Advice("use another name"))
}

// CheckKlusterlet returns an error of kind Usage when a Klusterlet cannot have this name, or when
// the namespace named after it belongs to something else.
func CheckKlusterlet(name string) error {
	if name == operatorv1.DefaultKlusterletName {
		return nil
	}
	message := fmt.Sprintf("%q cannot be the name of a klusterlet", name)
	used := []string{operatorv1.NamespaceAgent, operatorv1.NamespaceAgentAddOn, operatorv1.NamespaceHub}
	switch errs := validation.IsDNS1123Label(name); {
	case len(errs) > 0:
		return fleet.Misuse(message, errs[0], fleet.Advice("use a DNS label such as second"))
	case len(name) > maxKlusterlet:
		return fleet.Misuse(message, "its agent runs in namespace "+NamespaceFor(name), fleet.Advice(fmt.Sprintf("use at most %d characters", maxKlusterlet)))
	case slices.Contains(used, NamespaceFor(name)):
		return fleet.Misuse(message, "namespace "+NamespaceFor(name)+" belongs to another part of the installation", fleet.Advice("use another name"))
	}
	return nil
}
