// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	// EnvInfo is the environment variable with what a client asks of a credential program.
	EnvInfo = "KUBERNETES_EXEC_INFO"
	// FlagAccount is the flag that names the ManagedServiceAccount.
	FlagAccount = "managed-serviceaccount"
	// maxInfo is the largest request, and maxToken the largest token, in bytes.
	maxInfo  = 1 << 20
	maxToken = 16 << 10
)

var kind = metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: "ExecCredential"}

// ClusterOf returns the managed cluster that a client asks a token for: clusterName of its
// request, which is the value of EnvInfo. It sends no request. Errors say what is missing in the
// client's configuration.
func ClusterOf(info string) (string, error) {
	const why = "a Kubernetes client runs this command, and says in it which cluster it is about"
	fix := fleet.Advice("name the command in the exec section of a kubeconfig, or in the providers of a program that reads ClusterProfiles")
	var asked clientauthenticationv1.ExecCredential
	switch {
	case info == "":
		return "", fleet.Misuse(EnvInfo+" is not set", why, fix)
	case len(info) > maxInfo:
		return "", fleet.Misuse(fmt.Sprintf("%s has more than %d bytes", EnvInfo, maxInfo), why, fix)
	case json.Unmarshal([]byte(info), &asked) != nil:
		return "", fleet.Misuse(EnvInfo+" is no JSON of an ExecCredential", why, fix)
	}
	if asked.TypeMeta != kind {
		return "", fleet.Misuse(fmt.Sprintf("the client asks for %.80q in version %.80q", asked.Kind, asked.APIVersion),
			"this command answers in "+kind.APIVersion, fleet.Advice("set apiVersion: "+kind.APIVersion+" in the exec section"))
	}
	if asked.Spec.Cluster == nil {
		return "", fleet.Misuse("the client does not say which cluster it is about", "", fleet.Advice("set provideClusterInfo: true in the exec section"))
	}
	return clusterIn(asked.Spec.Cluster.Config.Raw)
}

// clusterIn returns clusterName of what a client passes on about a cluster.
func clusterIn(raw []byte) (string, error) {
	var config struct {
		ClusterName string `json:"clusterName"`
	}
	fix := fleet.Advice("give the cluster the extension client.authentication.k8s.io/exec with clusterName, " +
		"as status.accessProviders of its ClusterProfile has it")
	if len(raw) > 0 && json.Unmarshal(raw, &config) != nil {
		return "", fleet.Misuse("spec.cluster.config is no object with the name of a cluster", "", fix)
	}
	if config.ClusterName == "" {
		return "", fleet.Misuse("spec.cluster.config.clusterName is missing", "it is the name of the managed cluster", fix)
	}
	if len(validation.IsDNS1123Subdomain(config.ClusterName)) > 0 {
		return "", fleet.Misuse(fmt.Sprintf("spec.cluster.config.clusterName: %.80q cannot be the name of a cluster", config.ClusterName), "", fix)
	}
	return config.ClusterName, nil
}

// CheckHub returns an error if reaching the hub would run this very command again, without end.
func CheckHub(hub *fleet.Cluster) error {
	exec := hub.Config.ExecProvider
	if exec == nil || !slices.ContainsFunc(exec.Args, func(arg string) bool { return strings.HasPrefix(arg, "--"+FlagAccount) }) {
		return nil
	}
	return fleet.Misuse(hub.String()+" is not the hub", "its credentials come from this very command", NameHub.With())
}

// Options say whose token is wanted.
type Options struct {
	Hub *fleet.Cluster
	// Namespace is that of the ClusterProfile.
	Namespace string
	// Cluster is the managed cluster, and Account the ManagedServiceAccount.
	Cluster, Account string
}

// Get returns the answer to the client: the token, without an end. The client asks again when the
// cluster refuses it. It sends one request.
func Get(ctx context.Context, o Options) (*clientauthenticationv1.ExecCredential, error) {
	name := authenticationv1beta1.CopyName(o.Cluster, o.Account)
	what := "Secret " + o.Namespace + "/" + name
	s, err := typed.Get[corev1.Secret](ctx, o.Hub.Client, corev1.SchemeGroupVersion.WithResource("secrets"), o.Namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &fleet.Error{Message: what + " does not exist on " + o.Hub.String(), Err: err,
			Cause: "the hub makes it beside ClusterProfile " + o.Cluster + " while both feature gates are on and the ManagedServiceAccount has the label",
			Fix:   ShareToken.On(o.Hub, "cluster", o.Cluster, "account", o.Account, "label", authenticationv1beta1.LabelSyncToClusterProfile)}
	case apierrors.IsForbidden(err):
		return nil, fleet.Fail("reading "+what, err, fleet.Advice("grant this user the right to get the Secret "+name+" in namespace "+o.Namespace))
	case err != nil:
		return nil, fleet.Explain("reading "+what, o.Hub, err)
	}
	// Copies of two clusters may have the same name, and the token of one is not for the other.
	if owner := metav1.GetControllerOf(s); owner == nil || owner.Kind != "ClusterProfile" || owner.Name != o.Cluster {
		return nil, &fleet.Error{Message: what + " is no token for cluster " + o.Cluster, Cause: "it does not belong to the ClusterProfile of this cluster",
			Fix: fleet.ShowObject.On(o.Hub, "resource", "secret", "name", name, "namespace", o.Namespace)}
	}
	token := s.Data[authenticationv1beta1.SecretKeyToken]
	if len(token) == 0 || len(token) > maxToken || slices.ContainsFunc(token, func(b byte) bool { return b <= ' ' || b > '~' }) {
		return nil, &fleet.Error{Message: what + " holds no token",
			Cause: "its key " + authenticationv1beta1.SecretKeyToken + " is empty, or is not what a token can be",
			Fix:   fleet.ShowObject.On(o.Hub, "resource", "managedserviceaccount", "name", o.Account, "namespace", o.Cluster)}
	}
	return &clientauthenticationv1.ExecCredential{TypeMeta: kind, Status: &clientauthenticationv1.ExecCredentialStatus{Token: string(token)}}, nil
}
