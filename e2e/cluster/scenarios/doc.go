// Package scenarios has tests only: wva beside a real API server, KEDA and the HPA controller.
// Engines are simulated: their metrics follow from the load that a test sets and from the pods that
// the cluster really runs.
package scenarios
