package manifests

import (
	"github.com/wva-project/wva/inventory"
)

// Read reads the objects of a file of manifests: YAML or JSON, any number of documents and
// lists. A document that cannot be read is a problem of an Object that begins with the name of the
// file, and the rest is read all the same.
func Read(name string, data []byte) (inventory.Objects, []inventory.Problem) {
	read := parse(name, data)
	var objects inventory.Objects
	for _, m := range read.manifests {
		objects.Append(m.objects)
	}
	return objects, read.problems
}
