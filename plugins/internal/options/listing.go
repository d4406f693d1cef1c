// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Listed is a list as it was read once.
type Listed struct {
	// Kind of the document that -o json prints.
	Kind string
	// Items are the values that -o json prints, one per row.
	Items any
	// Table is the text output.
	Table ui.Table
	// Names are the lines of -o name.
	Names []string
	// Labels of the rows, for --show-labels; nil if they have none.
	Labels []map[string]string
	// Ranks order the rows of a table unless the user sorts them: the lowest first. Rows of the
	// same rank keep their order.
	Ranks []Rank
	// Empty is the note printed when there are no rows.
	Empty string
}

// Rank is how urgent a row of a table is.
type Rank int

// The ranks, the most urgent first.
const (
	// Failing needs somebody.
	Failing Rank = iota
	// Pending is on its way, or waits for somebody.
	Pending
	// Well needs nothing.
	Well
)

// watchPause is how often a watched list is read.
const watchPause = 2 * time.Second

// Show reads a list and prints it. With --watch it goes on until the user interrupts it: a terminal
// shows the list in place, other outputs get the rows that have changed.
func (l *Listing) Show(ctx context.Context, u *ui.UI, read func(context.Context) (Listed, error)) error {
	list, err := l.read(ctx, read)
	if err != nil {
		return err
	}
	if l.Format.Machine() {
		return u.Result(l.Format, list.Kind, list.Items, list.Names)
	}
	if len(list.Table.Rows) == 0 && !l.Watch {
		u.Note("%s", list.Empty)
		return nil
	}
	if screen := u.Screen(); screen != nil && l.Watch {
		return l.redraw(ctx, u, screen, list, read)
	}
	if err := u.List(list.Table, l.Format == ui.Wide, l.NoHeaders); err != nil || !l.Watch {
		return err
	}
	return l.follow(ctx, u, list, read)
}

// read reads the list once and puts it in order.
func (l *Listing) read(ctx context.Context, read func(context.Context) (Listed, error)) (Listed, error) {
	list, err := read(ctx)
	if err == nil {
		err = l.arrange(&list)
	}
	return list, err
}

// redraw shows the list in place. While it cannot be read, the last one stays with the reason.
func (l *Listing) redraw(ctx context.Context, u *ui.UI, screen *ui.Screen, list Listed, read func(context.Context) (Listed, error)) error {
	trouble := ""
	for {
		if err := screen.Draw(list.Table, l.Format == ui.Wide, l.NoHeaders, trouble); err != nil {
			return err
		}
		if !pause(ctx, u) {
			return nil
		}
		if next, err := l.read(ctx, read); err == nil {
			list, trouble = next, ""
		} else if ctx.Err() == nil {
			trouble = "not up to date: " + err.Error()
		}
	}
}

// pause waits until the list is due again; false says that the user has seen enough.
func pause(ctx context.Context, u *ui.UI) bool {
	select {
	case <-ctx.Done():
		return false
	case <-u.Streams.Clock.After(watchPause):
		return true
	}
}

// follow reads the list every watchPause and prints rows that are new or changed.
func (l *Listing) follow(ctx context.Context, u *ui.UI, last Listed, read func(context.Context) (Listed, error)) error {
	for pause(ctx, u) {
		next, err := l.read(ctx, read)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		changed := ui.Table{Heads: next.Table.Heads, Wide: next.Table.Wide}
		for _, row := range next.Table.Rows {
			if !slices.ContainsFunc(last.Table.Rows, func(old []string) bool { return isSameRow(old, row) }) {
				changed.Rows = append(changed.Rows, row)
			}
		}
		if len(changed.Rows) > 0 {
			if err := u.List(changed, l.Format == ui.Wide, true); err != nil {
				return err
			}
		}
		last = next
	}
	return nil
}

// isSameRow reports whether two rows differ in nothing but ages.
func isSameRow(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool { return x == y || (isAge(x) && isAge(y)) })
}

func isAge(s string) bool {
	return s != "" && strings.Trim(s, "0123456789smhdy") == "" && s[0] >= '0' && s[0] <= '9' && strings.ContainsAny(s, "smhdy")
}

// Add adds a row with its name under -o name and its labels. An empty cell is shown as "-".
func (list *Listed) Add(name string, labels map[string]string, cells ...string) {
	for i := range cells {
		cells[i] = ui.Dash(cells[i])
	}
	list.Names, list.Labels, list.Table.Rows = append(list.Names, name), append(list.Labels, labels), append(list.Table.Rows, cells)
}

// arrange adds the LABELS column and sorts the rows, as the flags ask for.
func (l *Listing) arrange(list *Listed) error {
	if l.ShowLabels {
		if l.Format != ui.Wide {
			list.Table = list.Table.Narrow()
		}
		list.Table.Heads = append(slices.Clip(list.Table.Heads), "LABELS")
		list.Table.Wide = 0
		for i, row := range list.Table.Rows {
			text := "<none>"
			if i < len(list.Labels) {
				text = labels.FormatLabels(list.Labels[i])
			}
			list.Table.Rows[i] = append(slices.Clip(row), text)
		}
	}
	if l.SortBy == "" {
		if !l.Format.Machine() && len(list.Ranks) == len(list.Table.Rows) {
			list.sort(func(a, b int) int { return cmp.Compare(list.Ranks[a], list.Ranks[b]) })
		}
		return nil
	}
	raw, err := json.Marshal(list.Items)
	if err != nil {
		return fmt.Errorf("encoding items: %w", err)
	}
	var items []any
	if err := json.Unmarshal(raw, &items); err != nil {
		return fmt.Errorf("encoding items: %w", err)
	}
	if len(items) != len(list.Table.Rows) {
		return Usage("a tree has several rows for one item: it cannot be sorted", "leave --sort-by out")
	}
	keys, err := l.sortKeys(list.Table, items)
	if err != nil {
		return err
	}
	order := list.sort(func(a, b int) int { return compare(keys[a], keys[b]) })
	list.Names, list.Items = inOrder(list.Names, order), inOrder(items, order)
	return nil
}

// sort sorts the rows of the table, and returns the old index for each new one.
func (list *Listed) sort(less func(a, b int) int) []int {
	order := make([]int, len(list.Table.Rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, less)
	list.Table.Rows = inOrder(list.Table.Rows, order)
	return order
}

// sortKeys returns the sort key of each row: a column, or a JSONPath of the items.
func (l *Listing) sortKeys(table ui.Table, items []any) ([]string, error) {
	keys := make([]string, 0, len(table.Rows))
	if i := slices.IndexFunc(table.Heads, func(h string) bool { return strings.EqualFold(h, l.SortBy) }); i >= 0 {
		for _, row := range table.Rows {
			keys = append(keys, row[i])
		}
		return keys, nil
	}
	path := jsonpath.New("sort").AllowMissingKeys(true)
	expression := l.SortBy
	if !strings.HasPrefix(expression, "{") {
		expression = "{." + strings.TrimPrefix(expression, ".") + "}"
	}
	if !strings.ContainsAny(l.SortBy, ".{") || path.Parse(expression) != nil {
		return nil, Usage(fmt.Sprintf("there is no column %q to sort by", l.SortBy),
			"use one of "+strings.ToLower(strings.Join(table.Heads, ", "))+", or a JSONPath such as .name")
	}
	for _, item := range items {
		var out strings.Builder
		if err := path.Execute(&out, item); err != nil {
			return nil, Usage("--sort-by "+l.SortBy+": "+err.Error(), "use a JSONPath of one item, such as .name")
		}
		keys = append(keys, out.String())
	}
	return keys, nil
}

// inOrder returns values in a new order, which has the old index for each new one.
func inOrder[T any](values []T, order []int) []T {
	out := make([]T, len(order))
	for to, from := range order {
		out[to] = values[from]
	}
	return out
}

func compare(a, b string) int {
	var x, y float64
	if _, err := fmt.Sscanf(a, "%g", &x); err == nil {
		if _, err := fmt.Sscanf(b, "%g", &y); err == nil && x != y {
			return cmp.Compare(x, y)
		}
	}
	return strings.Compare(a, b)
}
