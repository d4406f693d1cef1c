// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package browser_test

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/browser"
)

// TestFlawsOfPages: each flaw is found on a page that has it, and none on a page without.
func TestFlawsOfPages(t *testing.T) {
	b := browser.Start(t)
	plot := func(content string) string { return `<svg role="img" viewBox="0 0 100 20">` + content + `</svg>` }
	for name, tc := range map[string]struct{ body, want string }{
		"none":           {`<p>short</p>` + plot(`<text x="5" y="9" stroke="#fff">1</text>`), ""},
		"a wide word":    {`<p>` + strings.Repeat("x", 640) + `</p>`, "outside of"},
		"a wide box":     {`<div style="width:900px">x</div>`, "outside of the window: div"},
		"a narrow cell":  {`<table style="table-layout:fixed;width:90px"><tr><td>abcdefghijklm<td>b</table>`, `outside of its box: td "abcdefghijklm"`},
		"labels":         {plot(`<text x="5" y="9" stroke="#fff">12</text><text x="6" y="9" stroke="#fff">3</text>`), "covers another label"},
		"pale text":      {`<p style="color:#bbb">pale</p>`, `too little contrast: p "pale"`},
		"a covered text": {plot(`<text x="5" y="9" stroke="#000">12</text>`), `too little contrast: text "12"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.Open(t, page(t, tc.body), browser.View{Width: 480}).Flaws(t)
			if tc.want == "" {
				require.Empty(t, got)
				return
			}
			require.Contains(t, strings.Join(got, "\n"), tc.want)
		})
	}
}

// TestWhatAPageLoads: requests are seen though none can succeed, and so is what fails.
func TestWhatAPageLoads(t *testing.T) {
	b := browser.Start(t)
	address := page(t, `<p>text <span style="display:none">hidden</span></p><img src="http://192.0.2.1/x.png"><script>console.error("no")</script>`)
	loaded := b.Open(t, address, browser.View{Width: 480})
	require.ElementsMatch(t, []string{address, "http://192.0.2.1/x.png"}, loaded.Requests)
	require.Len(t, loaded.Complaints, 2, loaded.Complaints)
	require.Equal(t, []string{"text"}, loaded.Text(t, "p"))
}

// TestViewsOfAPage: a view without colours has none, and one with forced colours is known to the
// style sheet.
func TestViewsOfAPage(t *testing.T) {
	b := browser.Start(t)
	address := page(t, `<style>body { margin: 0 } div { background: #f00; height: 50px }
		@media (forced-colors: active) { p { display: none } }</style><div></div><p>seen</p>`)
	require.Equal(t, []string{"seen"}, b.Open(t, address, browser.View{Width: 480}).Text(t, "p"))
	require.Empty(t, b.Open(t, address, browser.View{Width: 480, Forced: true}).Text(t, "p"))
	again := b.Open(t, address, browser.View{Width: 480, Grey: true})
	require.Equal(t, []string{address}, again.Requests)
	require.Empty(t, again.Complaints)
	require.Equal(t, []string{"seen"}, again.Text(t, "p"))
	picture := filepath.Join(t.TempDir(), "folder", "page.png")
	again.Save(t, picture)
	file, err := os.Open(picture)
	require.NoError(t, err)
	defer file.Close()
	shown, err := png.Decode(file)
	require.NoError(t, err)
	require.Equal(t, 480, shown.Bounds().Dx())
	red, green, blue, _ := shown.At(9, 9).RGBA()
	require.Equal(t, red, green)
	require.Equal(t, red, blue)
}

// page writes a page and returns its address.
func page(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	const head = `<!DOCTYPE html><html lang="en"><link rel="icon" href="data:,"><body style="color:#000;background:#fff">`
	require.NoError(t, os.WriteFile(path, []byte(head+body), 0o600))
	return "file://" + path
}
