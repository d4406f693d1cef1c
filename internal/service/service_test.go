// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestAPathNamesOnePortOfAService(t *testing.T) {
	t.Parallel()
	for element, want := range map[string]Target{
		"web:443":       {Namespace: "apps", Name: "web", Scheme: "https", Port: 443},
		"https:web:443": {Namespace: "apps", Name: "web", Scheme: "https", Port: 443},
		"http:web:8080": {Namespace: "apps", Name: "web", Scheme: "http", Port: 8080},
		"http:65535":    {Namespace: "apps", Name: "http", Scheme: "https", Port: 65535},
		"http:https:1":  {Namespace: "apps", Name: "https", Scheme: "http", Port: 1},
	} {
		got, ok := Parse("apps", element)
		require.True(t, ok, element)
		require.Equal(t, want, got, element)
		head := http.Header{}
		got.Set(head)
		require.True(t, Named(head))
		read, err := Read(head)
		require.NoError(t, err, element)
		require.Equal(t, want, read, element)
	}
	for _, element := range []string{
		"", "web", "web:", ":443", "web:0", "web:0443", "web:+443", "web:65536", "web:https", "web:443:", ":web:443", "HTTP:web:80", "tcp:web:80",
		"ftp:web:21", "Web:80", "we_b:80", "web.apps:80", "http:http:web:80", "web:80 ", strings.Repeat("w", 64) + ":80",
	} {
		_, ok := Parse("apps", element)
		require.False(t, ok, element)
	}
	for _, namespace := range []string{"", "Apps", "a.b", "a/b", ".."} {
		_, ok := Parse(namespace, "web:443")
		require.False(t, ok, namespace)
	}
}

// TestAHeaderIsReadAsTheHubWritesIt, and in no other way.
func TestAHeaderIsReadAsTheHubWritesIt(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"two Services":     {"apps/https:web:443", "apps/https:db:443"},
		"empty":            {""},
		"without a scheme": {"apps/web:443"},
		"a path after it":  {"apps/https:web:443/admin"},
		"no namespace":     {"https:web:443"},
		"a blank":          {" apps/https:web:443"},
	} {
		_, err := Read(http.Header{Header: values})
		require.ErrorIs(t, err, errTarget, name)
	}
	require.False(t, Named(http.Header{}))
}

func TestWhatAListExposes(t *testing.T) {
	t.Parallel()
	list, err := ReadList(map[string]string{
		"ours":   "- {namespace: apps, service: web, port: 8080, protocol: http}\n- {namespace: apps, service: any-port, protocol: https}\n",
		"theirs": `[{"namespace": "ops", "service": "any-protocol", "port": "9090"}, {"namespace": "ops", "service": "all"}]`,
		"nobody": "",
	})
	require.NoError(t, err)
	require.Equal(t, 4, list.Len())
	for path, want := range map[string]bool{
		"apps/http:web:8080":           true,
		"apps/https:web:8080":          false,
		"apps/http:web:80":             false,
		"apps/http:we:8080":            false,
		"apps/http:web2:8080":          false,
		"ops/http:web:8080":            false,
		"apps/https:any-port:1":        true,
		"apps/http:any-port:1":         false,
		"ops/http:any-protocol:9090":   true,
		"ops/https:any-protocol:9090":  true,
		"ops/https:any-protocol:19090": false,
		"ops/http:all:1":               true,
		"ops/https:all:65535":          true,
	} {
		target, err := Read(http.Header{Header: {path}})
		require.NoError(t, err, path)
		require.Equal(t, want, list.Exposes(target), path)
		require.False(t, List{}.Exposes(target), path)
		alone, err := ReadList(map[string]string{"k": "- " + target.Entry()})
		require.NoError(t, err)
		require.True(t, alone.Exposes(target), "the entry that a message advises")
	}
}

// TestAListIsReadWholeOrNotAtAll, and the error names the key, the entry and what is allowed.
func TestAListIsReadWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const good = "- {namespace: apps, service: web}\n"
	for value, want := range map[string]string{
		good + "- {namespace: apps, service: web, port: http}":    `key k, entry 2: port "http" must be a number from 1 to 65535; leave it out to expose all ports`,
		good + "- {namespace: apps, service: web, port: 0}":       `port "0" must be`,
		good + "- {namespace: apps, service: web, port: 65536}":   `port "65536" must be`,
		good + "- {namespace: apps, service: web, port: -1}":      `port "-1" must be`,
		good + "- {namespace: apps, service: web, port: ''}":      `port "" must be`,
		good + "- {namespace: apps, service: web, protocol: tcp}": `protocol "tcp" must be http or https; leave it out to expose both`,
		good + "- {namespace: apps, service: '*'}":                `service "*" must be the name of a Service`,
		good + "- {namespace: '*', service: web}":                 `namespace "*" must be the name of a namespace`,
		good + "- {namespace: apps}":                              `service "" must be`,
		good + "- {service: web}":                                 `namespace "" must be`,
		good + "- {namespace: apps, service: web, ports: [80]}":   "key k is not a list of entries",
		good + "- {namespace: apps, namespace: b, service: web}":  "key k is not a list of entries",
		good + "- web":                     "key k is not a list of entries",
		"namespace: apps\nservice: web":    "key k is not a list of entries",
		"- {namespace: apps, service: web": "key k is not a list of entries",
		strings.Repeat(good, 1001):         "it has more than 1000 entries",
		strings.Repeat("#", 128<<10+1):     "it has more than 131072 bytes",
	} {
		list, err := ReadList(map[string]string{"a": good, "k": value})
		require.ErrorContains(t, err, want)
		require.Zero(t, list.Len(), "nothing of it is read")
	}
}

func TestEntriesAreSifted(t *testing.T) {
	t.Parallel()
	taken, left, err := Sift("- {namespace: apps, service: web, port: 80, protocol: http}\n- {namespace: apps, service: db, port: sql}\n" +
		"- {namespace: default, service: kubernetes}\n- {namespace: apps, service: x, more: y}\n- {namespace: apps, service: any}\n")
	require.NoError(t, err)
	require.Equal(t, []Target{{Namespace: "apps", Name: "web", Scheme: "http", Port: 80}, {Namespace: "apps", Name: "any"}}, taken)
	require.Len(t, left, 3)
	require.ErrorContains(t, left[0], `entry 2: port "sql" must be a number`)
	require.ErrorContains(t, left[1], "entry 3: it is the API server")
	require.ErrorContains(t, left[2], "entry 4: ")
	_, _, err = Sift("apps: web")
	require.ErrorContains(t, err, "it is not a list")
}

// TestOnlyTheAddressOfAServiceIsDialled, which its cluster has given to it.
func TestOnlyTheAddressOfAServiceIsDialled(t *testing.T) {
	t.Parallel()
	web := Target{Namespace: "apps", Name: "web", Scheme: "http", Port: 80}
	spec := func(address string) *corev1.ServiceSpec {
		return &corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: address, Ports: []corev1.ServicePort{
			{Port: 80}, {Port: 53, Protocol: corev1.ProtocolUDP}, {Port: 8443, Protocol: corev1.ProtocolTCP},
		}}
	}
	for _, address := range []string{"10.96.0.17", "fd00:10:96::1234"} {
		at, err := Address(web, spec(address))
		require.NoError(t, err)
		require.Equal(t, address, at.Addr().String())
		require.EqualValues(t, 80, at.Port())
	}
	for _, address := range []string{
		"169.254.169.254", "169.254.0.1", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1",
		"0.0.0.0", "::", "224.0.0.1", "ff02::1", "ff01::1", "node1", "10.0.0.1:80", "010.0.0.1",
	} {
		_, err := Address(web, spec(address))
		require.ErrorIs(t, err, errNotDialled, address)
		require.ErrorContains(t, err, fmt.Sprintf("%s is not an address of a Service", address))
	}
	for _, address := range []string{"", corev1.ClusterIPNone} {
		_, err := Address(web, spec(address))
		require.ErrorIs(t, err, errNotDialled)
		require.ErrorContains(t, err, "headless")
	}
	outside := &corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "metadata.internal", ClusterIP: "10.96.0.17", Ports: []corev1.ServicePort{{Port: 80}},
	}
	_, err := Address(web, outside)
	require.ErrorIs(t, err, errNotDialled)
	require.ErrorContains(t, err, "ExternalName")
	_, err = Address(Target{Namespace: "default", Name: "kubernetes", Scheme: "https", Port: 80}, spec("10.96.0.1"))
	require.ErrorIs(t, err, errNotDialled)
	require.ErrorContains(t, err, "managedclusters/proxy")
	for port, known := range map[uint16]bool{80: true, 8443: true, 53: false, 81: false} {
		_, err := Address(Target{Namespace: "apps", Name: "web", Scheme: "http", Port: port}, spec("10.96.0.17"))
		require.Equal(t, known, err == nil, port)
		if !known {
			require.ErrorIs(t, err, ErrNoPort)
		}
	}
}
