package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// document is one document of a file.
type document struct {
	number int // from 1
	line   int // in the file, from 1
	data   []byte
}

// splitDocuments splits a file at the lines that begin or end a document ("---", "..."). Blank
// documents are left out.
func splitDocuments(data []byte) []document {
	var documents []document
	start, startLine, line := 0, 1, 0
	cut := func(end int) {
		if text := data[start:end]; len(bytes.TrimSpace(text)) > 0 {
			documents = append(documents, document{len(documents) + 1, startLine, text})
		}
	}
	for at := 0; at < len(data); {
		line++
		length := len(data) - at
		if end := bytes.IndexByte(data[at:], '\n'); end >= 0 {
			length = end + 1
		}
		if mark := boundary(data[at : at+length]); mark > 0 {
			cut(at)
			start, startLine = at+mark, line
		}
		at += length
	}
	cut(len(data))
	return documents
}

// boundary returns the length of the mark with which a line begins or ends a document; 0 if it has
// none.
func boundary(line []byte) int {
	const length = 3
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return 0
	}
	if rest := line[length:]; len(rest) > 0 && !bytes.ContainsAny(rest[:1], " \t\r\n") {
		return 0
	}
	return length
}

// decode returns the content of the document: an object, a list, a scalar, or nil for nothing.
func (d document) decode() (any, error) {
	data := d.data
	if !json.Valid(data) {
		if name, found := alias(data); found {
			return nil, fmt.Errorf("uses the YAML alias *%s: aliases are not read, since a few of them can expand to more than fits into memory", name)
		}
		if severalValues(data) {
			return nil, errors.New("has text after a JSON value, which would be ignored; separate objects by a line ---, or put them into a List")
		}
		converted, err := yaml.YAMLToJSONStrict(data)
		if err != nil {
			return nil, errors.New(d.relocate(err.Error()))
		}
		data = converted
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// severalValues reports whether text follows a first JSON value. YAML readers ignore it.
func severalValues(data []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' || decoder.Decode(&first) != nil {
		return false
	}
	rest := bytes.TrimSpace(data[decoder.InputOffset():])
	return len(rest) > 0 && rest[0] != '#' && !bytes.HasPrefix(rest, []byte("---")) && !bytes.HasPrefix(rest, []byte("..."))
}

var lineNumber = regexp.MustCompile(`line (\d+)`)

// relocate makes a parser's line numbers those of the file, and its text one line.
func (d document) relocate(text string) string {
	text = lineNumber.ReplaceAllStringFunc(text, func(found string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(found, "line "))
		if err != nil {
			return found
		}
		return fmt.Sprintf("line %d", n+d.line-1)
	})
	return strings.Join(strings.Fields(text), " ")
}

// alias returns the name of a YAML alias: a word that follows a '*' and, as an anchor, a '&'. It
// may find one in plain text, and never misses one.
func alias(data []byte) (string, bool) {
	anchors := words(data, '&')
	if len(anchors) == 0 {
		return "", false
	}
	for name := range words(data, '*') {
		if anchors[name] {
			return name, true
		}
	}
	return "", false
}

// words returns the words that follow a mark, unless a letter or digit precedes the mark.
func words(data []byte, mark byte) map[string]bool {
	found := map[string]bool{}
	for at := 0; at < len(data); {
		next := bytes.IndexByte(data[at:], mark)
		if next < 0 {
			break
		}
		at += next + 1
		end := at
		for end < len(data) && isNameByte(data[end]) {
			end++
		}
		if end > at && (at < 2 || !isNameByte(data[at-2])) {
			found[string(data[at:end])] = true
		}
		at = max(at, end)
	}
	return found
}

// isNameByte reports whether a byte may occur in the name of an anchor.
func isNameByte(b byte) bool {
	return b == '_' || b == '-' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}
