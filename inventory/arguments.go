package inventory

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// limits are those of one replica, from the arguments of its engine; 0 if they do not set one.
type limits struct {
	sequences int     // requests in a batch
	tokens    float64 // KV cache size
	batched   int     // tokens in an iteration of one engine
	tensor    int     // accelerators over which one engine splits each layer
	precision string  // of the weights
}

// readLimits returns the limits of the first container that sets any, for a replica of so many
// pods.
func readLimits(template *corev1.PodTemplateSpec, name fleet.Engine, pods int) limits {
	at := slices.IndexFunc(engines, func(e engine.Engine) bool { return e.Name == name })
	if template == nil || at < 0 {
		return limits{}
	}
	for _, container := range template.Spec.Containers {
		if found := limitsOf(&engines[at], flagsOf(container), pods); found != (limits{}) {
			return found
		}
	}
	return limits{}
}

// engines are the rows of package engine, built once: the command line of every workload is read.
var engines = engine.Engines()

// limitsOf reads the flags of an engine. A limit of one data-parallel rank counts once for each
// rank.
func limitsOf(e *engine.Engine, flags map[string]string, pods int) limits {
	ranks := ranksOf(e, flags, pods)
	limit := func(l engine.Limit) int {
		if l.PerRank() {
			return ranks * firstCount(flags, e.Flag(l))
		}
		return firstCount(flags, e.Flag(l))
	}
	tokens := float64(limit(engine.CacheTokens))
	// The default block size depends on the platform: it has to be given.
	if blocks := float64(limit(engine.CacheBlocks)) * float64(limit(engine.BlockTokens)); blocks > 0 {
		tokens = blocks
	}
	return limits{
		sequences: limit(engine.MaxSequences), tokens: tokens, batched: scaledCount(firstFlag(flags, e.Flag(engine.BatchedTokens))),
		tensor: limit(engine.TensorParallel), precision: precision(flags, e.Flag(engine.Quantization)),
	}
}

// ranksOf returns the data-parallel ranks of a replica: those of its pod, or all of its group. If a
// group's flags do not tell them all, each of its pods has as many as the first.
func ranksOf(e *engine.Engine, flags map[string]string, pods int) int {
	ofPod, all := firstCount(flags, e.Flag(engine.PodRanks)), firstCount(flags, e.Flag(engine.Ranks))
	if pods <= 1 {
		return max(1, cmp.Or(ofPod, all))
	}
	return max(1, min(cmp.Or(all, ofPod*pods), math.MaxInt32))
}

// precision returns how the weights are quantized, in the engine's word; "" if the model's own
// files decide. The precision of the computation (--dtype) is not read: the weights of a quantized
// model have fewer bits.
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

// plainWord is the form of an engine's name for a quantization.
var plainWord = regexp.MustCompile(`^[a-z0-9_-]+$`)

// firstFlag returns the value of the first of several names for one flag that has one; "" if none
// has.
func firstFlag(flags map[string]string, names []string) string {
	for _, name := range names {
		if flags[name] != "" {
			return flags[name]
		}
	}
	return ""
}

// firstCount returns the number of the first of several names for one flag that has one; 0 if none
// has.
func firstCount(flags map[string]string, names []string) int {
	for _, name := range names {
		if n := count(flags[name]); n > 0 {
			return n
		}
	}
	return 0
}

// count returns a positive whole number; 0 if the text is none, or is larger than any limit of an
// engine.
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

// flagsOf returns the flags of a container's command line by name: "--max-num-seqs=64",
// "--max-num-seqs 64" and "--max_num_seqs=64" are the same. If one is repeated the last counts, as
// for the engines.
func flagsOf(container corev1.Container) map[string]string {
	words := commandLine(container, "")
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

// commandLine returns the words of command and arguments. A word with white space that is no flag
// and no JSON is taken for a shell script and split as a shell does it. Variables take the values
// that the container's environment gives in plain text, else their default, else the given text.
func commandLine(container corev1.Container, unknown string) []string {
	environment := make(map[string]string, len(container.Env))
	for _, variable := range container.Env {
		environment[variable.Name] = variable.Value
	}
	var words []string
	for _, list := range [][]string{container.Command, container.Args} {
		for _, word := range list {
			word = expand(word, environment, unknown)
			if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "{") || !strings.ContainsAny(word, " \t\n") {
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

// expand replaces variables by their values; those without one by their default, else by the given
// text.
func expand(word string, environment map[string]string, unknown string) string {
	if !strings.Contains(word, "$") {
		return word
	}
	return variable.ReplaceAllStringFunc(word, func(reference string) string {
		parts := variable.FindStringSubmatch(reference)
		if value := environment[parts[1]+parts[2]+parts[3]]; value != "" {
			return value
		}
		return cmp.Or(parts[4], unknown)
	})
}

// shellWords splits a script into words at white space and at the characters that end a command.
// Quotes keep the characters between them together, a backslash keeps the next character, and a
// comment is left out.
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
