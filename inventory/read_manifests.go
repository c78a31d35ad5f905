package inventory

// ReadManifests reads the objects of a file of manifests: YAML or JSON, any number of documents and
// lists. A document that cannot be read is a problem of an Object that begins with the name of the
// file, and the rest is read all the same.
func ReadManifests(name string, data []byte) (Objects, []Problem) {
	read := readManifests(name, data)
	var objects Objects
	for _, m := range read.manifests {
		objects.Append(m.objects)
	}
	return objects, read.problems
}
