package inventory

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func TestLimitsAreReadFromArguments(t *testing.T) {
	vllm := func(sequences int, tokens float64) limits { return limits{sequences: sequences, tokens: tokens} }
	tests := []struct {
		name    string
		command []string
		args    []string
		env     map[string]string
		want    limits
	}{
		{"nothing", []string{"vllm", "serve", "m"}, nil, nil, limits{}},
		{"joined", nil, []string{"--max-num-seqs=64"}, nil, vllm(64, 0)},
		{"two words", nil, []string{"--max-num-seqs", "64"}, nil, vllm(64, 0)},
		{"underscores", nil, []string{"--max_num_seqs=64"}, nil, vllm(64, 0)},
		{"underscores and two words", []string{"vllm", "serve", "m", "--max_num_seqs", "64"}, nil, nil, vllm(64, 0)},
		{"the last one counts", []string{"vllm", "--max-num-seqs=8"}, []string{"--max-num-seqs=64"}, nil, vllm(64, 0)},
		{"another flag that begins alike", nil, []string{"--max-num-seqs-total=8"}, nil, limits{}},
		{"no value", nil, []string{"--max-num-seqs", "--port=1"}, nil, limits{}},
		{"at the end", nil, []string{"--max-num-seqs"}, nil, limits{}},
		{"not a number", nil, []string{"--max-num-seqs=many"}, nil, limits{}},
		{"negative", nil, []string{"--max-num-seqs=-1"}, nil, limits{}},
		{"huge", nil, []string{"--max-num-seqs=99999999999999999999"}, nil, limits{}},
		// a script, for all that can be told
		{"a value of another flag", nil, []string{"--chat-template", "use --max-num-seqs=8 here"}, nil, vllm(8, 0)},
		{"text of another flag", nil, []string{"--chat-template=use --max-num-seqs=8 here"}, nil, limits{}},

		{"a script", []string{"sh", "-c"}, []string{"vllm serve m --max-num-seqs 64 --port 8000"}, nil, vllm(64, 0)},
		{"a script on several lines", []string{"/bin/bash", "-ec"}, []string{"vllm serve m \\\n  --max-num-seqs=64 \\\n  --port 8000\n"}, nil, vllm(64, 0)},
		{"a script with quotes", []string{"sh", "-c", `exec vllm serve "my model" '--max-num-seqs=64'`}, nil, nil, vllm(64, 0)},
		{"a comment in a script", []string{"sh", "-c", "# --max-num-seqs 8\nvllm serve m --max-num-seqs 64 # --max-num-seqs 9"}, nil, nil, vllm(64, 0)},
		{"a script's next command", []string{"sh", "-c", "vllm serve m --max-num-seqs 64;echo done"}, nil, nil, vllm(64, 0)},
		{"a quote that does not end", []string{"sh", "-c", "vllm 'serve --max-num-seqs 64"}, nil, nil, vllm(64, 0)},

		{"a variable of Kubernetes", nil, []string{"--max-num-seqs=$(SEQS)"}, map[string]string{"SEQS": "64"}, vllm(64, 0)},
		{"a variable of the shell", []string{"sh", "-c", "vllm serve --max-num-seqs ${SEQS}"}, nil, map[string]string{"SEQS": "64"}, vllm(64, 0)},
		{"a bare variable", []string{"sh", "-c", "vllm serve --max-num-seqs $SEQS"}, nil, map[string]string{"SEQS": "64"}, vllm(64, 0)},
		{"a variable's default", []string{"sh", "-c", "vllm serve --max-num-seqs ${SEQS:-32}"}, nil, nil, vllm(32, 0)},
		{"a variable that is not known", nil, []string{"--max-num-seqs=$(SEQS)"}, nil, limits{}},

		{"data parallel: the limit holds for each rank", nil, []string{"--max-num-seqs=64", "--data-parallel-size=4"}, nil, vllm(256, 0)},
		{"data parallel, in short", nil, []string{"--max-num-seqs=64", "-dp", "4"}, nil, vllm(256, 0)},
		{"data parallel over nodes: the ranks of this one", nil, []string{"--max-num-seqs=64", "--data-parallel-size=16", "--data-parallel-size-local=8"}, nil, vllm(512, 0)},
		{"KV blocks", nil, []string{"--num-gpu-blocks-override=1000", "--block-size", "16"}, nil, vllm(0, 16000)},
		{"KV blocks of a size that is not said", nil, []string{"--num-gpu-blocks-override=1000"}, nil, limits{}},
		{"tokens of an iteration", nil, []string{"--max-num-batched-tokens=8192"}, nil, limits{batched: 8192}},
		{"tokens of an iteration, with underscores", nil, []string{"--max_num_batched_tokens", "8192"}, nil, limits{batched: 8192}},
		{"tokens of an iteration in thousands", nil, []string{"--max-num-batched-tokens", "8k"}, nil, limits{batched: 8000}},
		{"tokens of an iteration in 1,024s", []string{"sh", "-c", "vllm serve --max-num-batched-tokens 8K"}, nil, nil, limits{batched: 8192}},
		{"tokens of an iteration that overflow", nil, []string{"--max-num-batched-tokens=2147483647K"}, nil, limits{}},
		{"tensor parallel", nil, []string{"--tensor-parallel-size=4"}, nil, limits{tensor: 4}},
		{"tensor parallel, in short", nil, []string{"-tp", "4"}, nil, limits{tensor: 4}},
		{"tensor parallel of a script", []string{"sh", "-c", "vllm serve m --tensor_parallel_size 8"}, nil, nil, limits{tensor: 8}},
		{
			"data parallel: an iteration is that of one rank", nil, []string{"--max-num-seqs=64", "--max-num-batched-tokens=2048", "-dp", "4"},
			nil, limits{sequences: 256, batched: 2048},
		},
		{"quantization", nil, []string{"--quantization=fp8"}, nil, limits{precision: "fp8"}},
		{"quantization, in short", nil, []string{"-q", "AWQ_marlin"}, nil, limits{precision: "awq_marlin"}},
		{"quantization by the model's files", nil, []string{"--quantization=compressed-tensors"}, nil, limits{}},
		{"quantization that is no name", nil, []string{"--quantization=f p"}, nil, limits{}},
		{"the precision of the computation is not that of the weights", nil, []string{"--dtype=bfloat16"}, nil, limits{}},
		{"a flag of the other engine", nil, []string{"--max-running-requests=64"}, nil, limits{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			container := corev1.Container{Command: test.command, Args: test.args}
			for name, value := range test.env {
				container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
			}
			template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--verbose"}}, container}}}
			require.Equal(t, test.want, readLimits(template, fleet.EngineVLLM, 1))
		})
	}
}

func TestSGLangHasFlagsOfItsOwn(t *testing.T) {
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Command: []string{"python3", "-m", "sglang.launch_server", "--max-running-requests=96", "--max-total-tokens", "400000", "--max-num-seqs=1"},
	}}}}
	require.Equal(t, limits{sequences: 96, tokens: 400000}, readLimits(template, fleet.EngineSGLang, 1))
	template.Spec.Containers[0].Command = []string{"python3", "-m", "sglang.launch_server", "--chunked-prefill-size=4096", "--tp", "2", "--mem-fraction-static=0.8", "--quantization", "w8a8_int8"}
	require.Equal(t, limits{batched: 4096, tensor: 2, precision: "w8a8_int8"}, readLimits(template, fleet.EngineSGLang, 1))
	require.Equal(t, limits{}, readLimits(template, "another", 1))
	require.Equal(t, limits{}, readLimits(nil, fleet.EngineSGLang, 1))
}

func TestEngineOfTheVariantSaysWhichFlagsAreRead(t *testing.T) {
	w := workloadOf(t, manifesttest.Scaled("a", "engine: sglang"), manifesttest.Deployment("a", 1, "args: [--max-running-requests=96, --max-total-tokens=400000, --tp-size=2, --chunked-prefill-size=2048, --mem-fraction-static=0.9, --quantization=fp8]"))
	require.Equal(t, 96, w.MaxSequences)
	require.InDelta(t, 400000.0, w.KVTokens, 0)
	require.Equal(t, 2048, w.BatchedTokens)
	require.Equal(t, 2, w.TensorParallel)
	require.Equal(t, "fp8", w.Precision)
}

func TestLimitsOfAGroupAreThoseOfAllItsRanks(t *testing.T) {
	for args, want := range map[string]int{
		"--data-parallel-size=8, --data-parallel-size-local=2":                 512,
		"--data-parallel-size=$(unknown), --data-parallel-size-local=2":        512,
		"--tensor-parallel-size=4":                                             64,
		"--data-parallel-size-local=2147483647, --data-parallel-hybrid-lb=yes": 64 * 2147483647,
	} {
		container := "containers: [{name: e, args: [--max-num-seqs=64, " + args + "]}]"
		w := workloadOf(t, group("big", 4, container, container),
			manifesttest.ScaledTo("a", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: big}"))
		require.Equal(t, want, w.MaxSequences, args)
	}
}
