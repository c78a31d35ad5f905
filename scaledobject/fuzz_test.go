package scaledobject

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
)

// checkRead fails unless Read returned a complete error or a valid variant.
func checkRead(t *testing.T, v fleet.Variant, err error) {
	t.Helper()
	if math.IsNaN(v.Cost) || math.IsInf(v.Cost, 0) || math.IsNaN(v.Objective.Percentile) {
		t.Fatalf("a number that is not finite in %+v", v)
	}
	if errors.Is(err, ErrNotOurs) {
		return
	}
	if err != nil {
		e := definition(t, err)
		if text := err.Error(); !utf8.ValidString(text) || strings.Count(text, "\n") != len(e.Errors)-1 {
			t.Fatalf("%d validation errors are not as many lines of text: %q", len(e.Errors), text)
		}
		if short := Short(err); short == "" || len(short) >= 200 || strings.Contains(short, "\n") {
			t.Fatalf("short text of %d bytes: %q", len(short), short)
		}
		return
	}
	switch {
	case v.ID.Namespace == "" || v.ID.Name == "" || v.Model.Name == "" || v.Model.Namespace != v.ID.Namespace:
		t.Fatalf("an identity is missing in %+v", v)
	case v.GPUsPerReplica < 1 || v.GPUsPerReplica > maxGPUs || v.Cost < 0 || v.Cost > maxCost:
		t.Fatalf("size or price out of range in %+v", v)
	case !slices.Contains([]fleet.Role{fleet.RoleBoth, fleet.RolePrefill, fleet.RoleDecode}, v.Role):
		t.Fatalf("role of %+v", v)
	case !slices.Contains(engineNames(), v.Engine):
		t.Fatalf("engine of %+v", v)
	case v.Profile != (fleet.EngineCost{}) && v.Profile.Check() != nil:
		t.Fatalf("a profile %+v: %v", v.Profile, v.Profile.Check())
	case v.Objective.TTFT < 0 || v.Objective.ITL < 0 || v.Objective.Percentile < 0 || v.Objective.Percentile >= 1:
		t.Fatalf("objective of %+v", v)
	case (v.Objective.TTFT > 0 || v.Objective.ITL > 0) && v.Objective.Percentile == 0:
		t.Fatalf("an objective without a percentile in %+v", v)
	case v.ScaleToZeroAfter != 0 && (v.ScaleToZeroAfter < minRetention || v.ScaleToZeroAfter > maxRetention):
		t.Fatalf("retention of %+v", v)
	case v.Range.Min < 0 || v.Range.Max < v.Range.Min || v.Range.Idle < 0 || (v.Range.AllowsIdle && v.Range.Idle >= v.Range.Min):
		t.Fatalf("range of %+v", v)
	}
}

func FuzzReadMetadata(f *testing.F) {
	for _, key := range Keys() {
		f.Add(key.Name, key.Example, "password")
	}
	f.Add("variantCost", "0x1p-2", "modelId")
	f.Add("ttft", "1e400", "caCert")
	f.Add("profile", "alpha=0.1, beta=1e-300,gamma=-0", "profileFromEnv")
	f.Add("profile", "alpha=6,=,alpha", "precision")
	f.Add("modelID", "\xff\x00", "modelIDFromEnv")
	f.Fuzz(func(t *testing.T, key, value, secretKey string) {
		const secret = "s3cr3t-s3cr3t-s3cr3t"
		metadata := map[string]string{"modelID": "m"}
		metadata[key] = value
		isOurs := slices.ContainsFunc(Keys(), func(k Key) bool { return k.Name == secretKey })
		if !isOurs {
			metadata[secretKey] = secret
		}
		v, err := ReadMetadata(team, metadata)
		checkRead(t, v, err)
		if err != nil && !strings.Contains(key+secretKey+value, secret) && strings.Contains(err.Error()+Short(err), secret) {
			t.Fatalf("the value of %q is echoed: %v", secretKey, err)
		}
		if err == nil {
			again, err := ReadMetadata(team, renderTrigger(v, RenderOptions{}).Metadata)
			if err != nil || !reflect.DeepEqual(again, v) {
				t.Fatalf("rendered and read again\n%+v, %v\nwant\n%+v", again, err, v)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no corpus: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"metadata":{"name":"a","namespace":"b","annotations":{"wva.dev/modelID":"m","wva.dev/minReplicaCount":"1"}},"spec":{"scaleTargetRef":{"name":"a"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o Object
		if json.Unmarshal(data, &o) != nil {
			return
		}
		v, err := Read(o)
		checkRead(t, v, err)
		dryRun, dryRunErr := ReadDryRun(o)
		checkRead(t, dryRun, dryRunErr)
		checkLint(t, o)
		if err != nil || o.Kind == jobKind {
			return
		}
		v.Fallback = false // it is in the status
		rendered := Render(v, RenderOptions{})
		again, err := Read(rendered)
		if err != nil || !reflect.DeepEqual(again, v) {
			t.Fatalf("rendered and read again\n%+v, %v\nwant\n%+v", again, err, v)
		}
		for _, finding := range checkLint(t, rendered) {
			if finding.Code != fleet.CodePercentileWithoutLimits {
				t.Fatalf("the rendered object has the finding %v", finding)
			}
		}
	})
}
