// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
)

// Alive returns a Check that asks an API server whether it is alive, for agents that run on
// another cluster than the one they serve.
func Alive(config *rest.Config) (Check, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address %s: %w", config.Host, err)
	}
	return func(ctx context.Context) error {
		status, err := get(ctx, client, base.JoinPath("livez"))
		if err == nil && status == http.StatusNotFound { // older than Kubernetes 1.16
			status, err = get(ctx, client, base.JoinPath("healthz"))
		}
		if err != nil {
			return fmt.Errorf("checking whether the managed cluster is alive: %w", err)
		}
		if status != http.StatusOK {
			return fmt.Errorf("checking whether the managed cluster is alive: %s answers %d", base.Host, status)
		}
		return nil
	}, nil
}

// get returns the status code of a response.
func get(ctx context.Context, client *http.Client, at *url.URL) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
