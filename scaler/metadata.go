package scaler

import (
	"fmt"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// maxMetadata bounds the trigger metadata that are read, in bytes of keys and values.
const maxMetadata = 256 << 10

// metadataReader reads the trigger metadata of an object and returns what is wrong with them.
type metadataReader func(fleet.VariantID, map[string]string) error

func readMetadata(id fleet.VariantID, metadata map[string]string) error {
	_, err := scaledobject.ReadMetadata(id, metadata)
	return err
}

// fault returns what is wrong with the trigger metadata of an object that the plan has no number for; nil where nothing
// is. Values may be secrets: only the reader's own short text leaves this method.
func (read metadataReader) fault(id fleet.VariantID, metadata map[string]string) error {
	size := 0
	for key, value := range metadata {
		size += len(key) + len(value)
	}
	if size > maxMetadata {
		return refuse(crowded, fmt.Sprintf("trigger metadata hold %d bytes in %d keys; at most %d bytes are read", size, len(metadata), maxMetadata))
	}
	if len(metadata) == 0 {
		return nil // somebody asks by name: KEDA always sends the trigger's metadata
	}
	if err := read(id, metadata); err != nil {
		return refuse(invalid, id.String()+": "+scaledobject.Short(err))
	}
	return nil
}
