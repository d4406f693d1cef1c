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
	// Empty is the note printed when there are no rows.
	Empty string
}

// watchPause is how often a watched list is read.
const watchPause = 2 * time.Second

// Show reads a list and prints it. With --watch it then prints changed rows until
// the user interrupts it.
func (l *Listing) Show(ctx context.Context, u *ui.UI, read func(context.Context) (Listed, error)) error {
	list, err := read(ctx)
	if err != nil {
		return err
	}
	if err := l.arrange(&list); err != nil {
		return err
	}
	if l.Format.Machine() {
		return u.Result(l.Format, list.Kind, list.Items, list.Names)
	}
	if len(list.Table.Rows) == 0 && !l.Watch {
		u.Note("%s", list.Empty)
		return nil
	}
	if err := u.List(list.Table, l.Format == ui.Wide, l.NoHeaders); err != nil || !l.Watch {
		return err
	}
	return l.follow(ctx, u, list, read)
}

// follow reads the list every watchPause and prints rows that are new or changed.
func (l *Listing) follow(ctx context.Context, u *ui.UI, last Listed, read func(context.Context) (Listed, error)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-u.Streams.Clock.After(watchPause):
		}
		next, err := read(ctx)
		if err != nil {
			if errors.Is(ctx.Err(), context.Canceled) {
				err = nil
			}
			return err
		}
		if err := l.arrange(&next); err != nil {
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
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(keys[a], keys[b]) })
	list.Table.Rows, list.Names, list.Items = inOrder(list.Table.Rows, order), inOrder(list.Names, order), inOrder(items, order)
	return nil
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
