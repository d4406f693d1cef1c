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

// Rules of an audit policy, in JSON; the first rule that matches a request applies.
const (
	// OnlyResources leaves out requests for no resource, such as /livez.
	OnlyResources = `{"level":"None","nonResourceURLs":["*"]}`
	// NotAdministrators leaves out the requests of the test itself.
	NotAdministrators = `{"level":"None","userGroups":["system:masters"]}`
	// NotReads and NotWatches leave out requests that change nothing.
	NotReads   = `{"level":"None","verbs":["get","list","watch"]}`
	NotWatches = `{"level":"None","verbs":["watch"]}`
	// Leases records all requests for leases, NotLeases none of them.
	Leases    = `{"level":"Metadata","resources":[{"group":"coordination.k8s.io"}]}`
	NotLeases = `{"level":"None","resources":[{"group":"coordination.k8s.io"}]}`
)

// Log is the audit log of one API server.
type Log struct {
	t            testing.TB
	policy, file string
}

// New prepares a log for a server that is started with Flags. It records each request
// that no rule leaves out once, when it has been answered; for a watch, its start as
// well.
func New(t testing.TB, rules ...string) *Log {
	t.Helper()
	dir := t.TempDir()
	l := &Log{t: t, policy: filepath.Join(dir, "policy.json"), file: filepath.Join(dir, "audit.log")}
	policy := `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],"rules":[` +
		strings.Join(append(rules, `{"level":"Metadata"}`), ",") + `]}`
	require.NoError(t, os.WriteFile(l.policy, []byte(policy), 0o600))
	return l
}

// Flags make kube-apiserver write the log into one file, which it would replace every 100 MB.
func (l *Log) Flags() []string {
	return []string{"--audit-policy-file=" + l.policy, "--audit-log-path=" + l.file, "--audit-log-maxsize=100000"}
}

// Mark returns the current end of the log, for Since.
func (l *Log) Mark() int64 {
	l.t.Helper()
	info, err := os.Stat(l.file)
	require.NoError(l.t, err)
	return info.Size()
}

// Since reads the log from a mark. The server may be in the middle of writing a line, at
// the end or at the mark: such a line is returned whole the next time, and not for this
// mark.
func (l *Log) Since(mark int64) (out []Request) {
	l.t.Helper()
	file, err := os.Open(l.file)
	require.NoError(l.t, err)
	defer func() { _ = file.Close() }()
	require.LessOrEqual(l.t, mark, l.Mark(), "the log that the mark is in was replaced")
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

// What returns the request in short: "patch managedclusters/status".
func (r Request) What() string {
	return strings.TrimSuffix(r.Verb+" "+r.Object.Resource+"/"+r.Object.Subresource, "/")
}

// Done reports whether the request succeeded.
func (r Request) Done() bool { return r.Response.Code < http.StatusMultipleChoices }

// Writes reports whether the request changed something.
func (r Request) Writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Done()
	}
	return false
}

// Reviews reports whether the request is sent as a write but writes nothing: a review, or
// a request for a token.
func (r Request) Reviews() bool {
	return strings.HasSuffix(r.Object.Resource, "reviews") || r.Object.Resource == "serviceaccounts" && r.Object.Subresource == "token"
}
