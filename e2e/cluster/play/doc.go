// Package play furnishes a test cluster for wva as an operator would: nodes with two GPU types,
// Prometheus, the chart and a sample. It plays the inference engines of all pods, and the load that
// they serve can be changed at any time.
//
// The engines are those of package simulation, in wall time. Each ready pod of a Deployment with a
// port named http answers /metrics on its own address, as vLLM does; a pod with a port named
// metrics answers as the gateway of its namespace. The load is in the ConfigMap load of the
// namespace play: requests a second by model.
//
// Limits: all models are played with the speed of Llama 3.1 8B; pods are ready at once; engines
// serve metrics, not requests.
package play
