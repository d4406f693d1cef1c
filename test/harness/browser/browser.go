// SPDX-License-Identifier: Apache-2.0

//go:build linux

package browser

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long the browser may take to answer.
const patience = 3 * time.Minute

// height is that of the window, in CSS pixels. Pages scroll.
const height = 900

//go:embed flaws.js
var flaws string

// Browser is a running Chromium with one tab.
type Browser struct {
	to      *os.File
	answers *os.File
	from    *bufio.Reader
	session string
	calls   int
	// seen are the events since the last page was opened.
	seen []message
}

// View says how a page is shown.
type View struct {
	// Width is that of the window, in CSS pixels.
	Width int
	// Grey takes all colours away.
	Grey bool
	// Forced shows the page in the few colours of a system with high contrast.
	Forced bool
}

// Page is a page that is loaded. It is valid until the browser opens another one.
type Page struct {
	// Requests are the addresses that the page requested, its own first, without those that hold their
	// content themselves.
	Requests []string
	// Complaints are the warnings and errors that the browser logged.
	Complaints []string

	b *Browser
}

// message is a call, an answer or an event of the DevTools protocol.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// Start starts a browser, which ends with the test.
func Start(t *testing.T) *Browser {
	t.Helper()
	in, to, err := os.Pipe()
	require.NoError(t, err)
	from, out, err := os.Pipe()
	require.NoError(t, err)
	// Chromium's socket is in this folder, and the path of a socket is at most 107 bytes long.
	home, err := os.MkdirTemp("", "browser-")
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--log-level=3", "--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir="+home)
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
	command.ExtraFiles = []*os.File{in, out} // they become the descriptors 3 and 4, which the pipe is by definition
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	require.NoError(t, command.Start())
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
	b := &Browser{to: to, answers: from, from: bufio.NewReader(from)}
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
		_, _ = to.Close(), from.Close()
		// A process that has just ended may still have written into it.
		require.Eventually(t, func() bool { return os.RemoveAll(home) == nil }, patience, time.Millisecond)
		if t.Failed() {
			t.Logf("the browser's log:\n%s", log.String())
		}
	})
	var tab struct {
		TargetID  string `json:"targetId"`
		SessionID string `json:"sessionId"`
	}
	b.call(t, "Target.createTarget", map[string]any{"url": "about:blank"}, &tab)
	b.call(t, "Target.attachToTarget", map[string]any{"targetId": tab.TargetID, "flatten": true}, &tab)
	b.session = tab.SessionID
	for _, domain := range []string{"Page", "Network", "Log", "Runtime"} {
		b.call(t, domain+".enable", nil, nil)
	}
	return b
}

// Open shows a page and returns once it and all that belongs to it is loaded.
func (b *Browser) Open(t *testing.T, address string, v View) *Page {
	t.Helper()
	grey, forced := "none", "none"
	if v.Grey {
		grey = "achromatopsia"
	}
	if v.Forced {
		forced = "active"
	}
	b.call(t, "Emulation.setDeviceMetricsOverride", map[string]any{"width": v.Width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call(t, "Emulation.setEmulatedVisionDeficiency", map[string]any{"type": grey}, nil)
	b.call(t, "Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "forced-colors", "value": forced}}}, nil)
	b.seen = nil
	b.call(t, "Page.navigate", map[string]any{"url": address}, nil)
	for !b.saw("Page.loadEventFired") {
		b.seen = append(b.seen, b.read(t))
	}
	// What is logged during the load has arrived when the next answer has.
	p := &Page{b: b}
	p.ask(t, "document.title", nil)
	p.listen(t)
	return p
}

// listen sorts what the browser reported while it loaded the page.
func (p *Page) listen(t *testing.T) {
	t.Helper()
	for _, event := range p.b.seen {
		text, err := json.Marshal(event.Params)
		require.NoError(t, err)
		switch event.Method {
		case "Network.requestWillBeSent":
			var sent struct{ Request struct{ URL string } }
			require.NoError(t, json.Unmarshal(text, &sent))
			if !strings.HasPrefix(sent.Request.URL, "data:") {
				p.Requests = append(p.Requests, sent.Request.URL)
			}
		case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
			p.Complaints = append(p.Complaints, string(text))
		}
	}
}

// Text returns the text that a reader sees in each visible element that a selector matches, with one
// space between words.
func (p *Page) Text(t *testing.T, selector string) []string {
	t.Helper()
	var out []string
	const read = "[...document.querySelectorAll(%q)].filter(e => e.checkVisibility())" +
		".map(e => (e.innerText ?? e.textContent).trim().replace(/\\s+/g, ' '))"
	p.ask(t, fmt.Sprintf(read, selector), &out)
	return out
}

// Flaws returns what breaks the layout: what sticks out of the window or of its box, labels of
// plots that cover each other, and text with too little contrast (below 4.5 to 1).
func (p *Page) Flaws(t *testing.T) []string {
	t.Helper()
	var out []string
	p.ask(t, flaws, &out)
	return out
}

// Save writes a picture of the whole page as a PNG file.
func (p *Page) Save(t *testing.T, path string) {
	t.Helper()
	var shot struct{ Data string }
	p.b.call(t, "Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	picture, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, picture, 0o600))
}

// ask evaluates an expression in the page.
func (p *Page) ask(t *testing.T, expression string, into any) {
	t.Helper()
	var answer struct {
		Result struct{ Value json.RawMessage }
		Failed json.RawMessage `json:"exceptionDetails"`
	}
	p.b.call(t, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	require.Empty(t, string(answer.Failed), expression)
	if into != nil {
		require.NoError(t, json.Unmarshal(answer.Result.Value, into))
	}
}

// call calls a method of the browser and waits for its answer.
func (b *Browser) call(t *testing.T, method string, params map[string]any, into any) {
	t.Helper()
	b.calls++
	text, err := json.Marshal(message{ID: b.calls, Session: b.session, Method: method, Params: params})
	require.NoError(t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(t, err, method)
	for {
		got := b.read(t)
		if got.ID != b.calls {
			b.seen = append(b.seen, got)
			continue
		}
		require.Empty(t, string(got.Error), method)
		if into != nil {
			require.NoError(t, json.Unmarshal(got.Result, into), method)
		}
		return
	}
}

// read reads one message.
func (b *Browser) read(t *testing.T) message {
	t.Helper()
	require.NoError(t, b.answers.SetReadDeadline(time.Now().Add(patience)))
	text, err := b.from.ReadBytes(0)
	require.NoError(t, err, "the browser does not answer")
	var out message
	require.NoError(t, json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &out))
	return out
}

// saw returns whether an event has been reported since the page was opened.
func (b *Browser) saw(method string) bool {
	for _, event := range b.seen {
		if event.Method == method {
			return true
		}
	}
	return false
}
