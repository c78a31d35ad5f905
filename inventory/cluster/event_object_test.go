package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// withUID gives a manifest a UID.
func withUID(manifest, uid string) string {
	return strings.Replace(manifest, "namespace: llm,", "namespace: llm, uid: \""+uid+"\",", 1)
}

func TestEventObjectIsTheOneThatDefinesTheVariant(t *testing.T) {
	for name, options := range map[string]Options{"all namespaces": {}, "one": {Namespaces: []string{"llm"}}} {
		t.Run(name, func(t *testing.T) {
			manifests := []string{
				withUID(manifesttest.Scaled("both"), "1"), withUID(manifesttest.AsJob(manifesttest.Scaled("both")), "2"),
				withUID(manifesttest.OtherObject("job", "x", ""), "3"), withUID(manifesttest.AsJob(manifesttest.Scaled("job")), "4"),
				withUID(manifesttest.OtherObject("theirs", "x", ""), "5"),
			}
			inCluster(t, options, manifests, func(w *world) {
				of := func(name string) corev1.ObjectReference {
					return w.EventObject(fleet.VariantID{Namespace: "llm", Name: name})
				}
				require.Equal(t, corev1.ObjectReference{Kind: "ScaledObject", UID: "1"}, of("both"))
				require.Equal(t, corev1.ObjectReference{Kind: "ScaledJob", UID: "4"}, of("job"))
				require.Equal(t, corev1.ObjectReference{Kind: "ScaledObject", UID: "5"}, of("theirs"))
				require.Zero(t, of("none"))
				require.Zero(t, w.EventObject(fleet.VariantID{Namespace: "elsewhere", Name: "both"}))
				w.api.remove("scaledobjects.keda.sh llm/both")
				w.api.apply(withUID(manifesttest.Scaled("none"), "6"))
				w.settle()
				require.Equal(t, corev1.ObjectReference{Kind: "ScaledJob", UID: "2"}, of("both"))
				require.Equal(t, corev1.ObjectReference{Kind: "ScaledObject", UID: "6"}, of("none"))
			})
		})
	}
}

func TestEventObjectIsUnknownBeforeAnythingIsRead(t *testing.T) {
	w := newWorld(t, Options{})
	require.Zero(t, w.EventObject(fleet.VariantID{Namespace: "llm", Name: "chat"}))
}
