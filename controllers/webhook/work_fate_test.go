// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

var garbageCollector = authenticationv1.UserInfo{
	Username: "system:serviceaccount:kube-system:generic-garbage-collector",
}

func ownedBy(owners ...metav1.OwnerReference) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) { w.OwnerReferences = owners }
}

func ofSet(name string) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		w.Labels = map[string]string{workv1alpha1.LabelManifestWorkReplicaSet: name, "team": "a"}
	}
}

// A user who may patch works, but neither delete them nor act as their executor, must not be
// able to have a replica set or the garbage collector do so.
func TestAWorkIsHandedOverByWhoMayActAsItsExecutor(t *testing.T) {
	yes := true
	there, missing := metav1.OwnerReference{
		APIVersion: "v1",
		Kind:       "ConfigMap",
		Name:       "there",
		UID:        "1",
	}, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "2"}
	blocking := there
	blocking.BlockOwnerDeletion = &yes
	checked := all
	checked.NilExecutorValidating = true
	for name, tc := range map[string]struct {
		old, change func(*workv1.ManifestWork)
		// free is true for changes that need no right.
		free bool
	}{
		"into a set":       {change: ofSet("c1.mine")},
		"into another set": {old: ofSet("c1.theirs"), change: ofSet("c1.mine")},
		"out of a set": {
			old:    ofSet("c1.theirs"),
			change: func(w *workv1.ManifestWork) { w.Labels = map[string]string{"team": "a"} },
		},
		"an owner":                 {change: ownedBy(missing)},
		"one owner more":           {old: ownedBy(there), change: ownedBy(there, missing)},
		"another owner":            {old: ownedBy(there), change: ownedBy(missing)},
		"an owner that is changed": {old: ownedBy(blocking), change: ownedBy(there)},
		"one owner less":           {old: ownedBy(there, missing), change: ownedBy(there), free: true},
		"owners in another order":  {old: ownedBy(there, missing), change: ownedBy(missing, there), free: true},
		"other labels": {
			old:    ofSet("c1.theirs"),
			change: func(w *workv1.ManifestWork) { ofSet("c1.theirs")(w); w.Labels["team"] = "b" },
			free:   true,
		},
		"finalizers": {
			change: func(w *workv1.ManifestWork) { w.Finalizers = []string{"example.com/a"} },
			free:   true,
		},
		"annotations": {
			change: func(w *workv1.ManifestWork) { w.Annotations = map[string]string{"a": "b"} },
			free:   true,
		},
		"of one that is deleted": {
			change: func(w *workv1.ManifestWork) { ofSet("c1.mine")(w); w.DeletionTimestamp = at(now) },
			free:   true,
		},
		"of one that is deleted, too": {
			change: func(w *workv1.ManifestWork) { ownedBy(missing)(w); w.DeletionTimestamp = at(now) },
			free:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(e *workv1.ManifestWorkExecutor, user authenticationv1.UserInfo, features webhook.Features, code int32, rights ...string) {
				t.Helper()
				old, current := work(e, oneMap), work(e, oneMap)
				if tc.old != nil {
					tc.old(old)
				}
				tc.change(current)
				message := ""
				if code != 0 {
					message = "cannot manipulate the Manifestwork with executor "
				}
				h := &stated{rights: rights}
				check(t, send(t, server(h, features), webhook.PathValidateWork, old, current, user), code, message)
				if tc.free {
					require.Empty(t, h.asked)
				}
			}
			refused := int32(400)
			if tc.free {
				refused = 0
			}
			robot := executor("n", "robot")
			answer(robot, person, all, refused, asOther)
			answer(robot, person, all, 0, asRobot)
			answer(robot, hubItself, checked, 0)
			answer(robot, garbageCollector, checked, 0)
			answer(&workv1.ManifestWorkExecutor{}, person, all, 0)
			answer(nil, person, all, 0)
			answer(nil, person, checked, refused)
			answer(nil, person, checked, 0, asAgent)
		})
	}
	// The old executor counts, whatever the new one is.
	old, current := work(executor("n", "robot"), oneMap), work(executor("n", "other"), oneMap)
	ofSet("c1.mine")(current)
	check(
		t, send(t, server(&stated{rights: []string{asOther}}, all), webhook.PathValidateWork, old, current, person), 400,
		"executor n/robot",
	)
}
