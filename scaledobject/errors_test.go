package scaledobject

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
)

func TestShortHasKeyValueAndTheAllowedValues(t *testing.T) {
	_, err := ReadMetadata(team, map[string]string{"modelID": "m", "variantCost": "cheap", "role": "cook", "colour": "red"})
	want := `role "cook" is not one of the choices; allowed: both, prefill or decode (and 2 more)`
	if got := Short(err); got != want {
		t.Errorf("short %q, want %q", got, want)
	}
	if got := Short(fmt.Errorf("reading: %w", err)); got != want {
		t.Errorf("wrapped: short %q, want %q", got, want)
	}
	if got := Short(nil); got != "" {
		t.Errorf("short of nil is %q", got)
	}
	if got := Short(ErrNotOurs); got != ErrNotOurs.Error() {
		t.Errorf("short %q, want the whole sentinel", got)
	}
}

func TestShortStaysShortAndOnOneLine(t *testing.T) {
	hostile := strings.Repeat("\xff\x00é\n\U0010ffff", 1<<16)
	unknown := map[string]string{"modelID": "m"}
	for i := range 5000 {
		unknown[fmt.Sprintf("%d%s", i, hostile[:1000])] = hostile
	}
	several := map[string]string{}
	for _, key := range Keys() {
		several[key.Name] = hostile
	}
	_, manyUnknown := ReadMetadata(team, unknown)
	_, everyKey := ReadMetadata(team, several)
	_, badName := ReadMetadata(fleet.VariantID{Namespace: hostile, Name: hostile}, nil)
	for name, err := range map[string]error{
		"unknown keys": manyUnknown, "every key": everyKey, "name": badName, "another error": errors.New(hostile),
	} {
		got := Short(err)
		if got == "" || len(got) >= 200 || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\x00") {
			t.Errorf("%s: short of %d bytes, %q", name, len(got), got)
		}
	}
	for name, err := range map[string]error{"unknown keys": manyUnknown, "every key": everyKey, "name": badName} {
		if text := err.Error(); len(text) > 12000 || !utf8.ValidString(text) {
			t.Errorf("%s: the error has %d bytes", name, len(text))
		}
	}
}

func TestErrorsAreTheSameForTheSameDefinition(t *testing.T) {
	read := func() string {
		_, err := ReadMetadata(team, map[string]string{"z": "1", "y": "2", "x": "3", "w": "4", "role": "cook", "variantCost": "-"})
		return err.Error() + Short(err)
	}
	first := read()
	for range 50 {
		if again := read(); again != first {
			t.Fatalf("one definition, two texts:\n%s\n%s", first, again)
		}
	}
}

func TestSecretsAreNeverEchoed(t *testing.T) {
	const secret = "hunter2-hunter2"
	metadata := map[string]string{
		"scalerAddress": secret, "caCert": secret, "tlsClientKey": secret, "passwordFromEnv": secret, "modelIDFromEnv": secret,
		"variantCostFromEnv": secret, "password": secret, "modelld": secret, "token\n": secret,
	}
	o := valid(func(o *Object) { o.Spec.Triggers[0].Metadata = metadata })
	_, read := Read(o)
	_, rpc := ReadMetadata(team, metadata)
	texts := []string{read.Error(), rpc.Error(), Short(read), Short(rpc), fmt.Sprintf("%+v %v", read, rpc)}
	for _, finding := range Lint(o) {
		texts = append(texts, finding.String(), fmt.Sprintf("%+v", finding))
	}
	for _, each := range append(ValidationErrors(read), ValidationErrors(rpc)...) {
		texts = append(texts, fmt.Sprintf("%+v", each))
	}
	for _, text := range texts {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is echoed in %q", text)
		}
	}
	if !strings.Contains(rpc.Error(), "modelIDFromEnv is not read") {
		t.Errorf("%v, want that modelIDFromEnv is not read", rpc)
	}
}

func TestClipCutsAtACharacter(t *testing.T) {
	for limit := 3; limit < 20; limit++ {
		got := clip("ééééééééééééé", limit)
		if len(got) > limit || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
			t.Errorf("clip to %d bytes: %q", limit, got)
		}
	}
	if got := clip("whole", 5); got != "whole" {
		t.Errorf("a text that fits became %q", got)
	}
}
