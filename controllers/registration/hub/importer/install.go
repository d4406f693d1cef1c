// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Renderers of the settings.
const (
	rendererAuto   = "render-auto"
	rendererSecret = "render-from-config-secret"
)

// Names that an import reads.
const (
	valuesSecret  = "cluster-import-config"
	valuesKey     = "values.yaml"
	kubeconfigKey = "value"
)

// tokenLife is how long the agent has to register, and patience how long an import may take.
const (
	tokenLife = 24 * time.Hour
	patience  = 2 * time.Minute
)

var (
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	accounts    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// install installs the agent on the cluster of s.
func (c *Controller) install(ctx context.Context, s State) *failure {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	config, failed := c.kubeconfig(ctx, s)
	if failed != nil {
		return failed
	}
	options, err := c.render(ctx, s)
	if err != nil {
		return fail(clusterv1.ReasonConfigRendererFailed, "preparing the settings of the agent", err)
	}
	remote, err := connect(config)
	if err != nil {
		return fail(clusterv1.ReasonKubeConfigGetFailed, "using the kubeconfig", err)
	}
	bootstrap, err := c.bootstrap(ctx, options)
	if err != nil {
		return fail(clusterv1.ReasonConfigRendererFailed, "preparing access to the hub", err)
	}
	there, err := remote.find(ctx, s.Cluster.Name, bootstrap)
	if err != nil || there {
		return importFailure(err)
	}
	if options.BootstrapKubeconfig == nil {
		if options.BootstrapKubeconfig, err = c.withToken(ctx, bootstrap); err != nil {
			return fail(clusterv1.ReasonConfigRendererFailed, "requesting a bootstrap token", err)
		}
	}
	objects, err := agent.Objects(options)
	if err != nil {
		return fail(clusterv1.ReasonConfigRendererFailed, "preparing the agent", err)
	}
	return importFailure(remote.apply(ctx, objects))
}

func importFailure(err error) *failure {
	if err == nil {
		return nil
	}
	return fail(clusterv1.ReasonImportFailed, "installing the agent", err)
}

// kubeconfig reads the kubeconfig that Cluster API keeps for a Cluster.
func (c *Controller) kubeconfig(ctx context.Context, s State) (*kubeconfig.Config, *failure) {
	key := clusterOf(s.Cluster)
	name := key.Name + clusterv1.SecretSuffixCAPI
	secret, err := typed.Get[corev1.Secret](ctx, c.config.Client, secrets, key.Namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &failure{clusterv1.ReasonKubeConfigNotFound, fmt.Sprintf("There is no Secret %s/%s", key.Namespace, name)}
	case apierrors.IsForbidden(err):
		return nil, &failure{clusterv1.ReasonKubeConfigGetFailed,
			fmt.Sprintf("The hub may not read Secret %s/%s. An administrator allows it with: %s", key.Namespace, name, confighub.AllowImporter)}
	case err != nil:
		return nil, fail(clusterv1.ReasonKubeConfigGetFailed, "reading Secret "+key.Namespace+"/"+name, err)
	case len(secret.Data[kubeconfigKey]) == 0:
		return nil, &failure{clusterv1.ReasonKubeConfigNotFound, fmt.Sprintf("Secret %s/%s has no key %s", key.Namespace, name, kubeconfigKey)}
	}
	config, err := kubeconfig.Parse(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, fail(clusterv1.ReasonKubeConfigGetFailed, "Secret "+key.Namespace+"/"+name, err)
	}
	return config, nil
}

// render returns what to install, with or without access to the hub.
func (c *Controller) render(ctx context.Context, s State) (agent.Options, error) {
	var v values
	for _, renderer := range s.Renderers {
		if renderer != rendererAuto && renderer != rendererSecret {
			return agent.Options{}, fmt.Errorf("there is no renderer %q: use %s and %s", renderer, rendererAuto, rendererSecret)
		}
	}
	required := slices.Contains(s.Renderers, rendererSecret)
	if required || len(s.Renderers) == 0 {
		secret, err := typed.Get[corev1.Secret](ctx, c.config.Client, secrets, s.Cluster.Name, valuesSecret)
		switch {
		case apierrors.IsNotFound(err) && !required:
		case err != nil:
			return agent.Options{}, err
		default:
			if v, err = parseValues(secret.Data[valuesKey]); err != nil {
				return agent.Options{}, fmt.Errorf("key %s of Secret %s/%s: %w", valuesKey, s.Cluster.Name, valuesSecret, err)
			}
		}
	}
	if v.BootstrapHubKubeConfig == "" && required && !slices.Contains(s.Renderers, rendererAuto) {
		return agent.Options{}, fmt.Errorf("the renderer %s alone needs the value bootstrapHubKubeConfig", rendererSecret)
	}
	image, err := c.image(ctx)
	if err != nil {
		return agent.Options{}, err
	}
	return v.options(s.Cluster.Name, image)
}

// image returns the image of the agent.
func (c *Controller) image(ctx context.Context) (string, error) {
	if c.config.Image != "" {
		return c.config.Image, nil
	}
	own, err := typed.Get[appsv1.Deployment](ctx, c.config.Client, deployments, confighub.Namespace, confighub.Name)
	if apierrors.IsNotFound(err) {
		return imageBeside("", version.Get()), nil // it runs outside of the hub
	}
	if err != nil {
		return "", err
	}
	for _, container := range own.Spec.Template.Spec.Containers {
		if container.Name == confighub.Name {
			return imageBeside(container.Image, version.Get()), nil
		}
	}
	return imageBeside("", version.Get()), nil
}

// bootstrap returns how the agent reaches the hub: as the settings say, otherwise at the
// address that the hub publishes.
func (c *Controller) bootstrap(ctx context.Context, o agent.Options) (*kubeconfig.Config, error) {
	if o.BootstrapKubeconfig != nil {
		return kubeconfig.Parse(o.BootstrapKubeconfig)
	}
	info, err := c.config.Client.Resource(configMaps).Namespace(metav1.NamespacePublic).Get(ctx, "cluster-info", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the address that the hub publishes: %w", err)
	}
	text, _, _ := unstructured.NestedString(info.Object, "data", "kubeconfig")
	published, err := clientcmd.Load([]byte(text))
	if err != nil {
		return nil, errors.New("the ConfigMap cluster-info in kube-public holds no kubeconfig")
	}
	for _, cluster := range published.Clusters {
		if cluster.Server != "" && len(cluster.CertificateAuthorityData) > 0 {
			return &kubeconfig.Config{ClusterEntry: "hub", Server: cluster.Server, CAData: cluster.CertificateAuthorityData}, nil
		}
	}
	return nil, errors.New("the ConfigMap cluster-info in kube-public has no address with an authority")
}

// withToken adds a new bootstrap token.
func (c *Controller) withToken(ctx context.Context, hub *kubeconfig.Config) ([]byte, error) {
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"spec": map[string]any{"expirationSeconds": int64(tokenLife.Seconds())},
	}}
	request.SetName(confighub.BootstrapServiceAccount)
	answer, err := c.config.Client.Resource(accounts).Namespace(confighub.Namespace).Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return nil, err
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	if token == "" {
		return nil, errors.New("the API server issued none")
	}
	return hub.WithToken(token)
}
