package inventory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
)

func FuzzCommandLine(f *testing.F) {
	f.Add("sh", "vllm serve m \\\n --max-num-seqs ${N:-64} # --max-num-seqs 8")
	f.Add("--max_num_seqs", "64")
	f.Add("-c", `exec 'a b' "--max-num-seqs=$N" && x; --max-num-seqs`)
	f.Fuzz(func(t *testing.T, command, argument string) {
		container := corev1.Container{
			Command: []string{command}, Args: []string{argument}, Env: []corev1.EnvVar{{Name: "N", Value: "$N"}},
		}
		template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
		for _, engine := range []fleet.Engine{fleet.EngineVLLM, fleet.EngineSGLang} {
			if found := readLimits(template, engine, 1); found.sequences < 0 || !(found.tokens >= 0) {
				t.Fatalf("limits %+v", found)
			}
		}
		for _, word := range shellWords(argument) {
			if len(word) > len(argument) {
				t.Fatalf("the word %q is longer than the script", word)
			}
		}
	})
}
