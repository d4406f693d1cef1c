// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// Down ends a lab and removes its contexts and its folder. It works on whatever a crash has
// left. The error is ErrNone if there is nothing.
func Down(root, name string, dry bool) (Result, error) {
	l, unlock, err := open(root, name, false)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	result := Result{Name: name, Folder: l.dir}
	for _, cluster := range l.clusters() {
		result.Items = append(result.Items, Item{cluster, Context(name, cluster), fleet.Deleted})
	}
	if dry {
		return result, nil
	}
	return result, l.remove()
}

// remove ends all processes, then removes the contexts, and last the folder with the record.
func (l *lab) remove() error {
	if err := process.EndAll(l.dir); err != nil {
		return fmt.Errorf("ending the playground %s: %w", l.name, err)
	}
	if err := l.removeContexts(); err != nil {
		return err
	}
	if err := os.RemoveAll(l.dir); err != nil {
		return fmt.Errorf("removing the playground %s: %w", l.name, err)
	}
	return nil
}
