package fleet

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Fits reports whether the row is about a variant of a model on accelerators, whose engine splits
// each layer over tensorParallel of them (0 means 1).
//
// A row without a precision fits any. A variant without one has that of the model's name, such as
// Llama-3.1-8B-FP8, else 16 bits, in which most models are published: a row of fewer bits would
// overstate the capacity of such an engine. Names of the same cost are one, such as bf16 and
// float16.
func (p Profile) Fits(model string, a Accelerator, precision string, tensorParallel int) bool {
	row := p.compiled()
	return p.place() == placeOf(p.Namespace, a, tensorParallel) && row.fits(strings.ToLower(model), precisionOf(model, precision))
}

// Covers reports whether the row fits all that another one fits, so that the other never counts
// below it.
func (p Profile) Covers(other Profile) bool {
	row, below := p.compiled(), other.compiled()
	return p.place() == other.place() && MatchPattern(row.pattern, below.pattern) && (row.precision == "" || row.precision == below.precision)
}

// Profiles finds the profile of a variant among rows. The zero value has none.
type Profiles struct {
	byPlace map[place][]compiledProfile
}

// NewProfiles returns the rows, to be searched in their order.
func NewProfiles(rows []Profile) Profiles {
	p := Profiles{byPlace: make(map[place][]compiledProfile)}
	for _, row := range rows {
		p.byPlace[row.place()] = append(p.byPlace[row.place()], row.compiled())
	}
	return p
}

// ProfileKey is all of a variant by which its profile is found. TensorParallel 0 means 1.
type ProfileKey struct {
	Namespace, Model string
	Accelerator      Accelerator
	Precision        string
	TensorParallel   int
}

// Find returns the first row that fits, as Fits says it: rows of the variant's namespace come
// before those of all.
func (p Profiles) Find(key ProfileKey) (Profile, bool) {
	folded, precision := strings.ToLower(key.Model), ""
	for _, namespace := range []string{key.Namespace, ""} {
		rows := p.byPlace[placeOf(namespace, key.Accelerator, key.TensorParallel)]
		if len(rows) > 0 && precision == "" {
			precision = precisionOf(key.Model, key.Precision)
		}
		for i := range rows {
			if rows[i].fits(folded, precision) {
				return rows[i].profile, true
			}
		}
	}
	return Profile{}, false
}

// place is the part of a row that is compared without its names.
type place struct {
	namespace      string
	accelerator    Accelerator
	tensorParallel int
}

func placeOf(namespace string, a Accelerator, tensorParallel int) place {
	return place{namespace, a, max(1, tensorParallel)}
}

func (p Profile) place() place { return placeOf(p.Namespace, p.Accelerator, p.TensorParallel) }

// compiledProfile is a row in the form in which it is compared.
type compiledProfile struct {
	pattern   string // in lower case
	precision string // canonical
	profile   Profile
}

func (p Profile) compiled() compiledProfile {
	return compiledProfile{pattern: strings.ToLower(p.Model), precision: CanonicalPrecision(p.Precision), profile: p}
}

// fits compares with a model's name in lower case and a canonical precision. An accelerator that is
// not known fits nothing.
func (c *compiledProfile) fits(model, precision string) bool {
	return c.profile.Accelerator != "" && (c.precision == "" || c.precision == precision) && MatchPattern(c.pattern, model)
}

// The precisions that have several names.
const (
	precision16   = "bf16"
	precisionFP8  = "fp8"
	precisionFP4  = "fp4"
	precisionInt8 = "int8"
	precisionInt4 = "int4"
)

// CanonicalPrecision returns the one name of precisions that cost an engine the same, in lower
// case: bf16 for float16, fp8 for fp8_e4m3. It returns "" for auto, which says nothing.
func CanonicalPrecision(name string) string {
	folded := strings.ReplaceAll(strings.ToLower(name), "-", "_")
	switch folded {
	case "auto":
		return ""
	case "bf16", "bfloat16", "fp16", "float16", "half", "16bit":
		return precision16
	case "fp8", "float8", "fp8_e4m3", "fp8_e5m2", "fbgemm_fp8", "ptpc_fp8", "modelopt", "modelopt_fp8", "w8a8_fp8":
		return precisionFP8
	case "fp4", "nvfp4", "mxfp4", "modelopt_fp4":
		return precisionFP4
	case "int8", "w8a8", "w8a8_int8", "w8a16", "8bit":
		return precisionInt8
	case "int4", "w4a16", "4bit", "awq", "awq_marlin", "gptq", "gptq_marlin":
		return precisionInt4
	case "fp32", "float32", "float":
		return "fp32"
	}
	return folded
}

// precisionOf returns the canonical precision of a variant.
func precisionOf(model, precision string) string {
	if said := CanonicalPrecision(precision); said != "" {
		return said
	}
	named, method := "", ""
	for part := range strings.FieldsFuncSeq(model, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		canonical := CanonicalPrecision(part)
		switch part = strings.ToLower(part); {
		// the bits may stand beside it, as in GPTQ-Int8
		case part == "awq" || part == "gptq" || part == "modelopt":
			method = canonical
		case slices.Contains([]string{precisionFP8, precisionFP4, precisionInt8, precisionInt4, "gguf"}, canonical):
			named = canonical
		}
	}
	return cmp.Or(named, method, precision16)
}
