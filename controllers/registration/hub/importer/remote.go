// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Limits of each request to a cluster that is imported.
const (
	maxAnswer = 4 << 20
	answerBy  = 15 * time.Second
	// servedWithin is how long a definition may take until its kind is served.
	servedWithin, servedCheck = 30 * time.Second, 200 * time.Millisecond
)

var (
	klusterlets = operatorv1.GroupVersion.WithResource("klusterlets")
	// errNotReached is what is wrong with a cluster that does not behave as an API server.
	errNotReached = errors.New("the cluster does not answer as an API server does")
)

// remote is a cluster that is imported.
type remote struct{ client dynamic.Interface }

// connect returns the cluster of a kubeconfig.
func connect(c *kubeconfig.Config) (remote, error) {
	config := &rest.Config{
		Host: c.Server, BearerToken: c.Token, UserAgent: "ocm-hub/" + version.Get(), QPS: -1, Timeout: answerBy,
		TLSClientConfig: rest.TLSClientConfig{ServerName: c.TLSServerName, CAData: c.CAData, CertData: c.CertData, KeyData: c.KeyData},
	}
	config.Wrap(kubeconfig.Direct)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return limited{next} })
	if c.ProxyURL != "" {
		proxy, err := url.Parse(c.ProxyURL)
		if err != nil {
			return remote{}, errors.New("proxy-url is not a URL")
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return remote{}, errors.New("its certificate, key or authority cannot be used")
	}
	return remote{client}, nil
}

// limited truncates answers.
type limited struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
	}
	return response, err
}

// find reports whether the agent is installed already for this name and this hub. It fails if
// the cluster has another agent, which must not be harmed.
func (r remote) find(ctx context.Context, name string, hub *kubeconfig.Config) (bool, error) {
	found, err := typed.Get[operatorv1.Klusterlet](ctx, r.client, klusterlets, "", operatorv1.DefaultKlusterletName)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, plain(err)
	}
	if found.Labels[operatorv1.LabelCreatedByKlusterlet] != operatorv1.DefaultKlusterletName || found.Spec.ClusterName != name {
		return false, fmt.Errorf("the cluster has a Klusterlet %s that is not of this import", operatorv1.DefaultKlusterletName)
	}
	secret, err := typed.Get[corev1.Secret](ctx, r.client, secrets, operatorv1.NamespaceAgent, operatorv1.SecretBootstrapHubKubeconfig)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, plain(err)
	}
	server := "" // a Secret that cannot be used is replaced
	if has, err := kubeconfig.Parse(secret.Data[clusterv1.SecretKeyKubeconfig]); err == nil {
		server = has.Server
	}
	if server != "" && server != hub.Server {
		return false, errors.New("the cluster belongs to another hub")
	}
	return server != "", nil
}

// apply applies the objects of the agent. Nothing is taken over from another field manager.
func (r remote) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := r.applyOne(ctx, o); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), plain(err))
		}
	}
	return nil
}

func (r remote) applyOne(ctx context.Context, o *unstructured.Unstructured) error {
	resource := r.client.Resource(reconcile.ResourceOf(o.GroupVersionKind())).Namespace(o.GetNamespace())
	switch o.GetKind() {
	case "CustomResourceDefinition":
		// One that is there may be newer.
		if _, err := resource.Create(ctx, o, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	case "Klusterlet":
		var err error
		_ = wait.PollUntilContextTimeout(ctx, servedCheck, servedWithin, true, func(ctx context.Context) (bool, error) {
			_, err = resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: Name})
			return !apierrors.IsNotFound(err), nil
		})
		return err
	}
	_, err := resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: Name})
	return err
}

// plain words an error without text that the cluster sent: it knows the token by then, and the
// condition is read by others.
func plain(err error) error {
	var status apierrors.APIStatus
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	var operation *net.OpError
	switch {
	case errors.As(err, &status):
		return fmt.Errorf("the cluster answered with code %d", status.Status().Code)
	case errors.As(err, &certificate):
		return errors.New("the certificate of the cluster cannot be verified with the authority of its kubeconfig")
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("the cluster did not answer in time")
	case errors.As(err, &operation) && operation.Op == "dial":
		return operation
	}
	return errNotReached
}
