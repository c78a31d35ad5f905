package scaledobject

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// form is the JSON type of a metadata value that is not a string, with its article.
type form string

const (
	formNumber  form = "a number"
	formBoolean form = "a boolean"
	formList    form = "a list"
	formObject  form = "an object"
)

// structured reports whether the value is none that quotes make valid.
func (f form) structured() bool { return f == formList || f == formObject }

// UnmarshalJSON reads a trigger, and metadata values that are not strings too: without quotes, YAML
// makes a number of 10 and a boolean of true. KEDA's CRD allows strings only. Read returns a
// validation error for each, and nothing else of the object is lost.
func (t *Trigger) UnmarshalJSON(data []byte) error {
	type fields Trigger // without this method
	decoded := struct {
		*fields
		Metadata map[string]json.RawMessage `json:"metadata"`
	}{fields: (*fields)(t)}
	if err := json.Unmarshal(data, &decoded); err != nil {
		return err
	}
	t.Metadata, t.unquoted = nil, nil
	if decoded.Metadata != nil {
		t.Metadata = make(map[string]string, len(decoded.Metadata))
	}
	for key, raw := range decoded.Metadata {
		text, is, err := readValue(raw)
		if err != nil {
			return fmt.Errorf("metadata of a trigger: %w", err)
		}
		t.Metadata[key] = text
		if is != "" {
			if t.unquoted == nil {
				t.unquoted = map[string]form{}
			}
			t.unquoted[key] = is
		}
	}
	return nil
}

// readValue returns a metadata value as text, and its form if it is not a string. The text of a
// list or an object is empty.
func readValue(raw json.RawMessage) (text string, is form, err error) {
	switch raw[0] {
	case '"', 'n': // null is empty
		err = json.Unmarshal(raw, &text)
		return text, "", err
	case '[':
		return "", formList, nil
	case '{':
		return "", formObject, nil
	case 't', 'f':
		return string(raw), formBoolean, nil
	}
	return string(raw), formNumber, nil
}

// unquotedError returns the validation error of a key of the table that is not a string.
func unquotedError(key Key, text string, is form) ValidationError {
	if is.structured() {
		return ValidationError{key.Name, "", "is " + string(is), key.Allowed, fmt.Sprintf("write one value in quotes, such as %q", key.Example)}
	}
	remedy := "write it in quotes: " + quoted(text)
	if key.Type == TypeText { // YAML has changed a value such as 007 already
		remedy = "write it in quotes, character for character"
	}
	return ValidationError{key.Name, escaped(text, valueLimit), "is " + string(is), "", remedy}
}

// checkOthers adds a validation error for each trigger with other values that are not strings: of
// keys that are not in the table, and of other scalers' triggers. It shows names only, since any of
// the values may be a secret.
func checkOthers(triggers []Trigger, ours int, errs *errorList) {
	for i, trigger := range triggers {
		names := slices.Sorted(maps.Keys(trigger.unquoted))
		if i == ours {
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(keyNames(), name) })
		}
		if len(names) == 0 {
			continue
		}
		place := keyOfAll
		if i != ours {
			place = fmt.Sprintf("triggers[%d].metadata", i)
		}
		errs.add(ValidationError{place, "", "has values that are not text, of keys " + listed(names, quoted), "", "write them in quotes"})
	}
}
