// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Dash returns text, or "-" if it is empty.
func Dash(text string) string {
	return cmp.Or(text, "-")
}

// Age returns how long ago something was; "-" for the zero time.
func Age(at metav1.Time, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return Lasting(now.Sub(at.Time))
}

// Lasting formats a duration. A negative one comes from clocks that differ, and counts
// as zero.
func Lasting(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

// hash matches the digest that begins the name of an AppliedManifestWork.
var hash = regexp.MustCompile(`^([0-9a-f]{12})[0-9a-f]{52}-`)

// Abridge shortens the digest at the start of a name, for tables.
func (u *UI) Abridge(name string) string {
	if u.Streams.utf8() {
		return hash.ReplaceAllString(name, "$1…-")
	}
	return hash.ReplaceAllString(name, "$1..-")
}

// Many counts things: "1 work", "2 works".
func Many(n int, what string) string { return fleet.Many(n, what) }

// Ratio returns "good/total", or "-" if total is 0.
func Ratio(good, total int) string {
	if total == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", good, total)
}
