// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Account is the ServiceAccount of an executor. The zero value is the agent itself.
type Account struct{ Namespace, Name string }

var (
	errType    = errors.New("only support ServiceAccount type for the executor")
	errAccount = errors.New("the executor service account is nil")
)

// Of reads the account of an executor; nil means the agent itself. An error says why
// there is no valid account; nothing may be applied then.
func Of(e *workv1.ManifestWorkExecutor) (Account, error) {
	switch {
	case e == nil:
		return Account{}, nil
	case e.Subject.Type != workv1.ExecutorSubjectTypeServiceAccount:
		return Account{}, errType
	case e.Subject.ServiceAccount == nil:
		return Account{}, errAccount
	}
	a := Account(*e.Subject.ServiceAccount)
	// A name with a colon would denote another user.
	for field, value := range map[string]string{"namespace": a.Namespace, "name": a.Name} {
		if len(validation.IsDNS1123Subdomain(value)) > 0 {
			return Account{}, fmt.Errorf("spec.executor.subject.serviceAccount.%s: %q is not the %s of a ServiceAccount; correct it", field, value, field)
		}
	}
	return a, nil
}

// IsAgent reports whether there is no executor.
func (a Account) IsAgent() bool { return a == Account{} }

// String returns namespace and name.
func (a Account) String() string { return a.Namespace + "/" + a.Name }

// userPrefix is the prefix of ServiceAccount user names.
const userPrefix = "system:serviceaccount:"

// User returns the user name of the account on an API server; empty for the agent itself.
func (a Account) User() string {
	if a.IsAgent() {
		return ""
	}
	return userPrefix + a.Namespace + ":" + a.Name
}

// OfUser returns the account of a user name made by User; for any other name, the agent
// itself.
func OfUser(user string) Account {
	text, ok := strings.CutPrefix(user, userPrefix)
	namespace, name, _ := strings.Cut(text, ":")
	if !ok || len(validation.IsDNS1123Subdomain(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Account{}
	}
	return Account{Namespace: namespace, Name: name}
}

// groups returns the groups of every ServiceAccount of the namespace. An API server
// assigns the same groups to a request that impersonates the account.
func (a Account) groups() []any {
	return []any{"system:serviceaccounts", "system:authenticated", "system:serviceaccounts:" + a.Namespace}
}
