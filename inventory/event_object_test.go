package inventory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

// withUID gives a manifest a UID.
func withUID(manifest, uid string) string {
	return strings.Replace(manifest, "namespace: llm,", "namespace: llm, uid: \""+uid+"\",", 1)
}

func asJob(manifest string) string {
	return strings.Replace(manifest, "kind: ScaledObject", "kind: ScaledJob", 1)
}

func TestEventObjectIsTheOneThatDefinesTheVariant(t *testing.T) {
	for name, options := range map[string]ClusterOptions{"all namespaces": {}, "one": {Namespaces: []string{"llm"}}} {
		t.Run(name, func(t *testing.T) {
			manifests := []string{
				withUID(scaled("both"), "1"), withUID(asJob(scaled("both")), "2"),
				withUID(otherObject("job", "x", ""), "3"), withUID(asJob(scaled("job")), "4"),
				withUID(otherObject("theirs", "x", ""), "5"),
			}
			inCluster(t, options, manifests, func(w *clusterWorld) {
				of := func(name string) EventObject { return w.EventObject(fleet.VariantID{Namespace: "llm", Name: name}) }
				require.Equal(t, EventObject{Kind: "ScaledObject", UID: "1"}, of("both"))
				require.Equal(t, EventObject{Kind: "ScaledJob", UID: "4"}, of("job"))
				require.Equal(t, EventObject{Kind: "ScaledObject", UID: "5"}, of("theirs"))
				require.Zero(t, of("none"))
				require.Zero(t, w.EventObject(fleet.VariantID{Namespace: "elsewhere", Name: "both"}))
				w.api.remove("scaledobjects.keda.sh llm/both")
				w.api.apply(withUID(scaled("none"), "6"))
				w.settle()
				require.Equal(t, EventObject{Kind: "ScaledJob", UID: "2"}, of("both"))
				require.Equal(t, EventObject{Kind: "ScaledObject", UID: "6"}, of("none"))
			})
		})
	}
}

func TestEventObjectIsUnknownBeforeAnythingIsRead(t *testing.T) {
	w := newClusterWorld(t, ClusterOptions{})
	require.Zero(t, w.EventObject(fleet.VariantID{Namespace: "llm", Name: "chat"}))
}
