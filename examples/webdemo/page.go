// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"html/template"
	"net/http"
)

// page is what the server shows.
type page struct {
	Message string
	Cluster string
	Node    string
	Pod     string
	Version string
}

var layout = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>webdemo on {{.Cluster}}</title>
<style>body{font:16px/1.5 sans-serif;margin:4rem auto;max-width:36rem;padding:0 1rem}dt{color:#666}dd{margin:0 0 .5rem}</style></head>
<body>
<h1>{{.Message}}</h1>
<dl>
<dt>cluster</dt><dd>{{.Cluster}}</dd>
<dt>node</dt><dd>{{.Node}}</dd>
<dt>pod</dt><dd>{{.Pod}}</dd>
<dt>version</dt><dd>{{.Version}}</dd>
</dl>
</body>
</html>
`))

// pageFrom fills the page from the environment. A cluster without a name gets the name of
// its node, which single-node clusters name alike.
func pageFrom(getenv func(string) string, version string) page {
	or := func(value, fallback string) string {
		if value == "" {
			return fallback
		}
		return value
	}
	node := or(getenv("NODE_NAME"), "unknown")
	return page{
		Message: or(getenv("MESSAGE"), "Hello from "+or(getenv("CLUSTER_NAME"), node)),
		Cluster: or(getenv("CLUSTER_NAME"), node),
		Node:    node,
		Pod:     or(getenv("POD_NAME"), "unknown"),
		Version: version,
	}
}

// handler serves the page and the health check; the page is rendered once.
func handler(p page) (http.Handler, error) {
	var body bytes.Buffer
	if err := layout.Execute(&body, p); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body.Bytes()) // a client that has disconnected is no error
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux, nil
}
