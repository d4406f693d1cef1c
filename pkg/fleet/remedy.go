// SPDX-License-Identifier: Apache-2.0

package fleet

// Fix is what helps with a failure: an Advice or a Remedy; nil when unknown.
type Fix interface{ fix() }

// Advice is a fix in plain words, the same in every program.
type Advice string

// Remedy is a fix that the program using the library puts into words, for example as a
// command.
type Remedy struct {
	// Code says what to do.
	Code RemedyCode
	// On is the cluster on which to do it; nil when that is obvious.
	On *Cluster
	// Values are the names, files and contexts that it needs, by their role.
	Values map[string]string
}

// RemedyCode names a remedy. The constants are in the package that needs them.
type RemedyCode string

// Remedies that several packages use.
const (
	// AcceptCluster accepts a cluster, AcceptAndWait also one that has yet to ask.
	AcceptCluster RemedyCode = "AcceptCluster"
	AcceptAndWait RemedyCode = "AcceptAndWait"
	// AwaitNamespace waits until a namespace is gone, AwaitNamespaces until the one that is
	// being deleted is gone.
	AwaitNamespace  RemedyCode = "AwaitNamespace"
	AwaitNamespaces RemedyCode = "AwaitNamespaces"
	// CheckHub checks the hub, HubStatus shows its components.
	CheckHub  RemedyCode = "CheckHub"
	HubStatus RemedyCode = "HubStatus"
	// ChooseHub turns the cluster into a hub, or uses another one.
	ChooseHub RemedyCode = "ChooseHub"
	// CreateNamespace creates a namespace.
	CreateNamespace RemedyCode = "CreateNamespace"
	// JoinCluster joins a cluster, or updates its agent.
	JoinCluster RemedyCode = "JoinCluster"
	// ListKinds shows what kinds a cluster serves.
	ListKinds RemedyCode = "ListKinds"
	// LongerTimeout repeats the same command with more time.
	LongerTimeout RemedyCode = "LongerTimeout"
	// MendWorks corrects or deletes works that cannot be applied.
	MendWorks RemedyCode = "MendWorks"
	// NameCA names the CA of a cluster.
	NameCA RemedyCode = "NameCA"
	// ShowAddOn shows everything of an add-on, on one cluster or on all of them.
	ShowAddOn RemedyCode = "ShowAddOn"
	// ShowLogs reads the logs of a Deployment.
	ShowLogs RemedyCode = "ShowLogs"
	// ShowObject shows an object, or those of a kind.
	ShowObject RemedyCode = "ShowObject"
	// ShowWorks shows the works of a cluster, or one of them.
	ShowWorks RemedyCode = "ShowWorks"
)

func (Advice) fix() {}
func (Remedy) fix() {}

// On returns the remedy on a cluster, with values as pairs of key and value.
func (c RemedyCode) On(on *Cluster, values ...string) Remedy {
	r := Remedy{Code: c, On: on, Values: map[string]string{}}
	for i := 1; i < len(values); i += 2 {
		r.Values[values[i-1]] = values[i]
	}
	return r
}

// With returns the remedy without a cluster.
func (c RemedyCode) With(values ...string) Remedy { return c.On(nil, values...) }

// Note is a remark, and what helps with it, if anything.
type Note struct {
	Text string
	Fix  Fix
}

// MarshalText leaves out the fix; a program that can word it adds it to the text before.
func (n Note) MarshalText() ([]byte, error) { return []byte(n.Text), nil }
