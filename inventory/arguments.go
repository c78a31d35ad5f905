package inventory

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
)

// limits is what the arguments of an engine say of one replica; 0 where they say nothing.
type limits struct {
	sequences int     // requests in a batch
	tokens    float64 // room of the KV cache
	batched   int     // tokens in an iteration of one engine
	tensor    int     // accelerators over which one engine splits each layer
	memory    float64 // part of an accelerator's memory that the engine takes
	precision string  // of the weights
}

// dialect is how an engine calls its limits: flags without leading dashes, with '-' for '_'. An empty name: it has no such
// flag.
type dialect struct {
	engine    fleet.Engine
	sequences string
	tokens    string // room of the KV cache in tokens
	blocks    string // room of the KV cache in blocks
	blockSize string // tokens in a block; its default depends on the platform, so it has to be said
	batched   string
	memory    string
	tensor    []string
	quantized []string // how the weights are quantized
	// ranks are the names of the number of engines that share a pod; the limits hold for each of them.
	ranks []string
}

func dialects() []dialect {
	return []dialect{
		{
			engine: fleet.EngineVLLM, sequences: "max-num-seqs", blocks: "num-gpu-blocks-override", blockSize: "block-size",
			batched: "max-num-batched-tokens", memory: "gpu-memory-utilization", tensor: []string{"tensor-parallel-size", "tp"},
			ranks: []string{"data-parallel-size-local", "dpl", "data-parallel-size", "dp"}, quantized: []string{"quantization", "q"},
		},
		{
			engine: fleet.EngineSGLang, sequences: "max-running-requests", tokens: "max-total-tokens",
			batched: "chunked-prefill-size", memory: "mem-fraction-static", tensor: []string{"tensor-parallel-size", "tp-size", "tp"},
			quantized: []string{"quantization"},
		},
	}
}

// readLimits returns the limits that the first container says which says any.
func readLimits(template *corev1.PodTemplateSpec, engine fleet.Engine) limits {
	if template == nil {
		return limits{}
	}
	for _, dialect := range dialects() {
		if dialect.engine != engine {
			continue
		}
		for _, container := range template.Spec.Containers {
			if found := dialect.read(flagsOf(container)); found != (limits{}) {
				return found
			}
		}
	}
	return limits{}
}

func (d dialect) read(flags map[string]string) limits {
	ranks := max(1, firstCount(flags, d.ranks))
	tokens := float64(count(flags[d.tokens]))
	if blocks := float64(count(flags[d.blocks])) * float64(count(flags[d.blockSize])); blocks > 0 {
		tokens = blocks
	}
	return limits{
		sequences: ranks * count(flags[d.sequences]), tokens: float64(ranks) * tokens,
		batched: scaledCount(flags[d.batched]), tensor: firstCount(flags, d.tensor), memory: share(flags[d.memory]),
		precision: precision(flags, d.quantized),
	}
}

// precision returns how the weights are quantized, in the engine's word. It returns "" where that leaves it to the model's own
// files. What an engine computes in (--dtype) is not read: the weights of a quantized model have fewer bits.
func precision(flags map[string]string, names []string) string {
	const longest = 32 // bytes
	for _, name := range names {
		word := strings.ToLower(flags[name])
		if word == "" || word == "none" || word == "auto" || word == "compressed-tensors" || len(word) > longest || !plainWord.MatchString(word) {
			continue
		}
		return word
	}
	return ""
}

// plainWord is what engines call a quantization.
var plainWord = regexp.MustCompile(`^[a-z0-9_-]+$`)

// firstCount returns the number of the first of several names for one flag that has one; 0 where none has.
func firstCount(flags map[string]string, names []string) int {
	for _, name := range names {
		if n := count(flags[name]); n > 0 {
			return n
		}
	}
	return 0
}

// count returns a positive whole number; 0 where the text is none, or is larger than any limit of an engine.
func count(text string) int {
	const largest = 1 << 31
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n >= largest {
		return 0
	}
	return int(n)
}

// scaledCount returns a count that may end in k for 1,000 or K for 1,024, as vLLM reads it.
func scaledCount(text string) int {
	digits, scale := text, 1
	if before, found := strings.CutSuffix(text, "k"); found {
		digits, scale = before, 1000
	} else if before, found := strings.CutSuffix(text, "K"); found {
		digits, scale = before, 1024
	}
	n := count(digits)
	if n > math.MaxInt32/scale {
		return 0
	}
	return n * scale
}

// share returns a number above 0 and at most 1; 0 where the text is none.
func share(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0 && x <= 1) {
		return 0
	}
	return x
}

// flagsOf returns the flags of a container's command line by name: "--max-num-seqs=64", "--max-num-seqs 64" and
// "--max_num_seqs=64" are the same. Of one that is repeated the last counts, as engines read them.
func flagsOf(container corev1.Container) map[string]string {
	words := commandLine(container)
	flags := map[string]string{}
	for i, word := range words {
		name, isFlag := strings.CutPrefix(word, "-")
		if !isFlag {
			continue
		}
		name, value, joined := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if !joined && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			value = words[i+1]
		}
		if name != "" {
			flags[strings.ReplaceAll(name, "_", "-")] = value
		}
	}
	return flags
}

// commandLine returns the words of command and arguments. A word with white space in it that is no flag is taken for a
// shell's script and split as a shell does it. Variables take the values that the container's environment spells out.
func commandLine(container corev1.Container) []string {
	environment := make(map[string]string, len(container.Env))
	for _, variable := range container.Env {
		environment[variable.Name] = variable.Value
	}
	var words []string
	for _, list := range [][]string{container.Command, container.Args} {
		for _, word := range list {
			word = expand(word, environment)
			if strings.HasPrefix(word, "-") || !strings.ContainsAny(word, " \t\n") {
				words = append(words, word)
			} else {
				words = append(words, shellWords(word)...)
			}
		}
	}
	return words
}

// variable matches Kubernetes' $(NAME) and the shell's $NAME, ${NAME} and ${NAME:-default}.
var variable = regexp.MustCompile(`\$\((\w+)\)|\$(\w+)|\$\{(\w+)(?::?-([^}]*))?\}`)

// expand replaces variables by their values; those without one by their default, or nothing.
func expand(word string, environment map[string]string) string {
	if !strings.Contains(word, "$") {
		return word
	}
	return variable.ReplaceAllStringFunc(word, func(reference string) string {
		parts := variable.FindStringSubmatch(reference)
		if value := environment[parts[1]+parts[2]+parts[3]]; value != "" {
			return value
		}
		return parts[4]
	})
}

// shellWords splits a script into words at white space and at the signs that end a command. Quotes keep what they enclose
// together, a backslash keeps the next character, and a comment is left out.
func shellWords(script string) []string {
	var words []string
	var word strings.Builder
	started := false
	end := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	for i := 0; i < len(script); i++ {
		switch c := script[i]; {
		case strings.IndexByte(" \t\r\n;&|()<>", c) >= 0:
			end()
		case c == '#' && !started:
			i += lineLength(script[i:]) - 1
		case c == '\\' && i+1 < len(script):
			i++
			if script[i] != '\n' {
				word.WriteByte(script[i])
				started = true
			}
		case c == '\'' || c == '"':
			length := max(0, strings.IndexByte(script[i+1:], c))
			word.WriteString(script[i+1 : i+1+length])
			i += length + 1
			started = true
		default:
			word.WriteByte(c)
			started = true
		}
	}
	end()
	return words
}

// lineLength returns the length of the text's first line without its end.
func lineLength(text string) int {
	if end := strings.IndexByte(text, '\n'); end >= 0 {
		return end
	}
	return len(text)
}
