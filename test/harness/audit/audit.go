// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rules of a policy, in its JSON form; the first one that matches a request holds.
const (
	// OnlyResources leaves out what concerns no resource, as /livez.
	OnlyResources = `{"level":"None","nonResourceURLs":["*"]}`
	// NotAdministrators leaves out what the test itself asks.
	NotAdministrators = `{"level":"None","userGroups":["system:masters"]}`
	// NotReads and NotWatches leave out what changes nothing.
	NotReads   = `{"level":"None","verbs":["get","list","watch"]}`
	NotWatches = `{"level":"None","verbs":["watch"]}`
	// Leases notes them all, NotLeases none of them.
	Leases    = `{"level":"Metadata","resources":[{"group":"coordination.k8s.io"}]}`
	NotLeases = `{"level":"None","resources":[{"group":"coordination.k8s.io"}]}`
)

// Log is the audit log of one API server.
type Log struct {
	t            testing.TB
	policy, file string
}

// New prepares a log of a server that is started with Flags. It notes each request
// that no rule leaves out once, when it has been answered; of a watch, its beginning
// too.
func New(t testing.TB, rules ...string) *Log {
	t.Helper()
	dir := t.TempDir()
	l := &Log{t: t, policy: filepath.Join(dir, "policy.json"), file: filepath.Join(dir, "audit.log")}
	policy := `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],"rules":[` +
		strings.Join(append(rules, `{"level":"Metadata"}`), ",") + `]}`
	require.NoError(t, os.WriteFile(l.policy, []byte(policy), 0o600))
	return l
}

// Flags make kube-apiserver write the log.
func (l *Log) Flags() []string {
	return []string{"--audit-policy-file=" + l.policy, "--audit-log-path=" + l.file}
}

// Mark is the place in the log where what comes from now on begins.
func (l *Log) Mark() int64 {
	l.t.Helper()
	info, err := os.Stat(l.file)
	require.NoError(l.t, err)
	return info.Size()
}

// Since reads the log from a mark on. The server may be in the midst of a line, at the
// end and at the mark: such a line is told whole the next time, and not by this mark.
func (l *Log) Since(mark int64) (out []Request) {
	l.t.Helper()
	file, err := os.Open(l.file)
	require.NoError(l.t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(max(0, mark-1), io.SeekStart)
	require.NoError(l.t, err)
	lines := bufio.NewReader(file)
	for first := mark > 0; ; first = false {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(l.t, err)
		if first {
			continue
		}
		var r Request
		require.NoError(l.t, json.Unmarshal(line, &r))
		out = append(out, r)
	}
}

// Request is a line of the log.
type Request struct {
	Verb, Stage string
	URI         string `json:"requestURI"`
	UserAgent   string
	User        struct{ Username string }
	Object      struct{ Resource, Subresource, Namespace, Name string } `json:"objectRef"`
	Response    struct{ Code int }                                      `json:"responseStatus"`
}

// What is the request in short: "patch managedclusters/status".
func (r Request) What() string {
	return strings.TrimSuffix(r.Verb+" "+r.Object.Resource+"/"+r.Object.Subresource, "/")
}

// Done tells whether the request was answered with what it asked for.
func (r Request) Done() bool { return r.Response.Code < http.StatusMultipleChoices }

// Writes tells whether the request changed something.
func (r Request) Writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Done()
	}
	return false
}

// Reviews tells requests that are sent as writes and write nothing: reviews, and
// those for tokens.
func (r Request) Reviews() bool {
	return strings.HasSuffix(r.Object.Resource, "reviews") || r.Object.Resource == "serviceaccounts" && r.Object.Subresource == "token"
}
