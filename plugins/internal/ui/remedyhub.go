// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
)

// hubWordings are the fixes for hubs, their tokens, and how they are reached and trusted.
var hubWordings = wordings{
	hub.CleanFirst:   "keep it as it is, or remove it first: kubectl ocm hub clean{{.on}}",
	hub.ReachableHub: "clusters elsewhere need --apiserver-url https://<reachable>",
	hub.UnjoinFirst:  "kubectl ocm unjoin {{.cluster}} --context <its context> --hub-context {{.hub}}      or add --force",
	hub.UseHub:       "use it as it is (kubectl ocm hub status{{.on}}), or remove it with the tool that installed it",

	token.AccountToken:    "kubectl ocm hub token{{.on}}      (a token of the bootstrap service account)",
	token.BootstrapToken:  "kubectl ocm hub token create --cluster {{.cluster}} --use-bootstrap-token{{.on}}",
	token.BootstrapTokens: "kubectl ocm hub token create --cluster NAME --use-bootstrap-token{{.on}}      (one token for each cluster)",
	token.ExampleTTL:      "for example --ttl 1h",
	token.ExampleUses:     "for example --uses 1; without --uses it is for any number",
	token.NewToken:        "kubectl ocm hub token --context <the hub's context>      then give the new token to join",
	token.OneCluster:      "leave out --use-bootstrap-token, or bind the token to one cluster by --cluster NAME",

	trust.CheckAddress: "check --hub-apiserver, network and proxy",
	trust.CheckCA:      "check --ca-file and --hub-apiserver; nothing was sent to the hub",
	trust.CompareCA:    "compare it, or use --hub-ca-hash",
	trust.ExampleProxy: "for example --proxy-url http://proxy.example.org:3128",
	trust.NameHubCA: "name the hub's CA by --ca-file FILE; on the hub: kubectl config view --raw --minify " +
		"-o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d",
	trust.RightHub: "make sure that you reach the right hub, and take the hash from: kubectl ocm hub token -o jsonpath={.ca-hash}",
	trust.TakeHash: "take it from: kubectl ocm hub token -o jsonpath={.ca-hash}",
}
