// SPDX-License-Identifier: Apache-2.0

package fleet

// Fix is what helps with a failure: an Advice or a Remedy, nil where nothing is
// known to.
type Fix interface{ fix() }

// Advice is a fix in plain words, the same whatever program prints it.
type Advice string

// Remedy is a fix that the program which uses the library puts into words: as a
// command, for example.
type Remedy struct {
	// Code says what is to be done.
	Code RemedyCode
	// On is the cluster where it is to be done; nil where that goes without saying.
	On *Cluster
	// Values are the names, files and contexts that it takes, by what they are.
	Values map[string]string
}

// RemedyCode names what helps. The constants stand in the package that needs them.
type RemedyCode string

// What helps in many places.
const (
	// AcceptCluster lets a cluster in, AcceptAndWait also one that has yet to ask.
	AcceptCluster RemedyCode = "AcceptCluster"
	AcceptAndWait RemedyCode = "AcceptAndWait"
	// AwaitNamespace waits until a namespace is gone, AwaitNamespaces until the one is
	// that is being deleted.
	AwaitNamespace  RemedyCode = "AwaitNamespace"
	AwaitNamespaces RemedyCode = "AwaitNamespaces"
	// CheckHub looks for what keeps the hub from working, HubStatus at its parts.
	CheckHub  RemedyCode = "CheckHub"
	HubStatus RemedyCode = "HubStatus"
	// ChooseHub makes the cluster a hub, or takes another one.
	ChooseHub RemedyCode = "ChooseHub"
	// CreateNamespace makes a namespace.
	CreateNamespace RemedyCode = "CreateNamespace"
	// JoinCluster joins a cluster, or brings its agent up to date.
	JoinCluster RemedyCode = "JoinCluster"
	// ListKinds shows what kinds a cluster serves.
	ListKinds RemedyCode = "ListKinds"
	// LongerTimeout gives the same command more time.
	LongerTimeout RemedyCode = "LongerTimeout"
	// MendWorks corrects or deletes works that cannot be applied.
	MendWorks RemedyCode = "MendWorks"
	// NameCA names the CA of a cluster.
	NameCA RemedyCode = "NameCA"
	// ShowAddOn tells all of an add-on, on one cluster or on all of them.
	ShowAddOn RemedyCode = "ShowAddOn"
	// ShowLogs reads what a Deployment's pods say.
	ShowLogs RemedyCode = "ShowLogs"
	// ShowObject looks at an object, or at those of a kind.
	ShowObject RemedyCode = "ShowObject"
	// ShowWorks tells of the works of a cluster, or of one of them.
	ShowWorks RemedyCode = "ShowWorks"
)

func (Advice) fix() {}
func (Remedy) fix() {}

// On is the remedy on a cluster, with values as pairs of key and value.
func (c RemedyCode) On(on *Cluster, values ...string) Remedy {
	r := Remedy{Code: c, On: on, Values: map[string]string{}}
	for i := 1; i < len(values); i += 2 {
		r.Values[values[i-1]] = values[i]
	}
	return r
}

// With is the remedy where no cluster needs to be told.
func (c RemedyCode) With(values ...string) Remedy { return c.On(nil, values...) }

// Note is something to tell, and what helps with it, if anything.
type Note struct {
	Text string
	Fix  Fix
}

// MarshalText leaves the fix out; who can word it adds it to the text before.
func (n Note) MarshalText() ([]byte, error) { return []byte(n.Text), nil }
