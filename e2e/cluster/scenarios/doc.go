// Package scenarios has tests only: wva beside a real API server, KEDA and the HPA controller. Engines are played: what they
// would report follows from the load that a test asks for and from the pods that the cluster really runs.
package scenarios
